/** The commands of the catalog, and what limiters can do. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as all from 'redis-ratelimit'
import { Commands } from 'redis-ratelimit'
import { FACTS } from '../dist/call/catalog.js'
import { can, factsOf } from '../dist/call/facts.js'

test('each command of the catalog is a method', () => {
  const { commands } = JSON.parse(readFileSync('../contract/catalog.json', 'utf8')) as { commands: { forms: { name: string }[] }[] }
  const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const methods = Object.getOwnPropertyNames(Commands.prototype).filter((name) => name !== 'constructor')
  assert.deepEqual(new Set(methods), new Set(commands.flatMap(({ forms }) => forms.map(({ name }) => camel(name)))))
})

test('each limiter has facts, and a class with the fields that they name', () => {
  for (const name of Object.keys(FACTS)) {
    const { burst, count, per } = factsOf(name)
    const named = Object.entries(all).find(([key]) => key.toUpperCase() === name)
    assert.ok(named, `${name} has no class`)
    const source = String(named[1])
    for (const field of [burst, count, per]) assert.ok(field === undefined || source.includes(`this.${field} =`), `${name}: ${field}`)
  }
})

test('a limiter that is not in the catalog counts as a bucket without a known rate', () => {
  for (const name of ['GREETING', 'constructor']) {
    const greeting = { name, words: ['10s'] }
    assert.deepEqual([can(greeting, 'hold'), can(greeting, 'refund'), can(greeting, 'early')], [true, true, false])
    assert.deepEqual([factsOf(name).burst, factsOf(name).count, factsOf(name).per], [undefined, undefined, undefined])
  }
})
