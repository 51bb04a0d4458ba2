// Builds the package: CommonJS with its types, a door to it for ES modules, and the licences beside them. There is one copy of
// the code, so that `instanceof` holds whichever way a program takes.

import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, '..', '..')

if (!existsSync(join(here, 'src/commands.ts'))) {
  console.error('src/commands.ts is missing. clients/generate/typescript.py makes it, and tools/packages calls that.')
  process.exit(1)
}
rmSync(join(here, 'dist'), { recursive: true, force: true })
execFileSync(process.execPath, [join(here, 'node_modules/typescript/bin/tsc')], { cwd: here, stdio: 'inherit' })
// Else Node.js would take the files below for ES modules, as the package says.
writeFileSync(join(here, 'dist/package.json'), '{ "type": "commonjs" }\n')
const { exports } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
for (const { import: door } of Object.values(exports)) {
  if (door === undefined) continue
  for (const file of [door.types, door.default]) {
    const common = basename(file).replace(/(\.d)?\.m[jt]s$/, '.js')
    writeFileSync(join(here, file), `export * from './${common}'\n`)
  }
}
for (const licence of ['LICENSE-APACHE', 'LICENSE-MIT']) {
  if (existsSync(join(root, licence))) copyFileSync(join(root, licence), join(here, licence))
}
