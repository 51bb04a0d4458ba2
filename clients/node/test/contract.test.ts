/** What both packages do alike, as clients/contract describes it. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { replay, type Case } from './replay.js'

const FOLDER = '../contract/cases'

for (const name of readdirSync(FOLDER).filter((name) => name.endsWith('.json'))) {
  const { subject, cases } = JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as { subject: string; cases: Case[] }
  describe(`the contract, ${subject}`, () => {
    for (const one of cases) test(one.name, () => replay(one))
  })
}
