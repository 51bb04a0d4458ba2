/** The order of the house: which files import which, and where the process' own clock is. */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'

// Each room and each file at the top imports only what stands before it, and its own room.
const ORDER = ['errors', 'runtime', 'call', 'decide', 'wire', 'commands', 'taken', 'local', 'limiter', 'opentelemetry', 'gate', 'web', 'flexible', 'index']
const FILES = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const sourceOf = (file: string) => readFileSync(join('src', file), 'utf8')
const roomOf = (file: string) => file.split('/')[0]!.replace(/\.ts$/, '')

function importsOf(file: string): string[] {
  const found = sourceOf(file).matchAll(/^(?:import|export) [^;]*?from '(\.[^']+)\.js'/gm)
  return [...found].map(([, path]) => `${normalize(join(dirname(file), path!))}.ts`)
}

test('a room imports only rooms that stand below it', () => {
  assert.deepEqual(new Set(FILES.map(roomOf)), new Set(ORDER))
  for (const file of FILES) {
    for (const other of importsOf(file)) {
      assert.ok(FILES.includes(other), `${file} imports ${other}`)
      assert.ok(ORDER.indexOf(roomOf(other)) <= ORDER.indexOf(roomOf(file)), `${file} imports ${other}, which stands above it`)
    }
  }
  const strangers = FILES.filter((file) => roomOf(file) !== 'flexible' && importsOf(file).some((other) => roomOf(other) === 'flexible'))
  assert.deepEqual(strangers, [])
})

test('files do not import one another in circles', () => {
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]) => {
    assert.ok(!path.includes(file), [...path, file].join(' -> '))
    if (done.has(file)) return
    for (const other of importsOf(file)) visit(other, [...path, file])
    done.add(file)
  }
  for (const file of FILES) visit(file, [])
})

test('time, timers and chance are made in one file', () => {
  // A `Command` of ioredis has a method of this name.
  const real = /performance\.now|Date\.now|(?<!command\.)setTimeout(?!:)|setInterval|setImmediate|Math\.random|randomUUID|node:timers/
  assert.deepEqual(FILES.filter((file) => real.test(sourceOf(file))), ['runtime.ts'])
})
