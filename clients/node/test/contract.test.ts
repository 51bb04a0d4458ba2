/** What both packages do alike, as clients/contract describes it, and in the same words what only this one does yet. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { replay, type Case } from './replay.js'

const FOLDERS = ['../contract/cases', 'test/cases']
const files = FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))

for (const file of files.filter((name) => name.endsWith('.json'))) {
  const { subject, cases } = JSON.parse(readFileSync(file, 'utf8')) as { subject: string; cases: Case[] }
  describe(`the contract, ${subject}`, () => {
    for (const one of cases) test(one.name, () => replay(one))
  })
}
