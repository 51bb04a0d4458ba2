// Builds the package: ES modules and CommonJS, each with its types, and the licences beside them.

import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, '..', '..')

if (!existsSync(join(here, 'src/commands.ts'))) {
  console.error('src/commands.ts is missing. clients/generate/typescript.py makes it, and tools/packages calls that.')
  process.exit(1)
}
rmSync(join(here, 'dist'), { recursive: true, force: true })
const tsc = join(here, 'node_modules/typescript/bin/tsc')
for (const config of ['tsconfig.json', 'tsconfig.cjs.json']) {
  execFileSync(process.execPath, [tsc, '-p', config], { cwd: here, stdio: 'inherit' })
}
mkdirSync(join(here, 'dist/cjs'), { recursive: true })
// Else Node.js would take the files below for ES modules, as the package says.
writeFileSync(join(here, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n')
for (const licence of ['LICENSE-APACHE', 'LICENSE-MIT']) {
  if (existsSync(join(root, licence))) copyFileSync(join(root, licence), join(here, licence))
}
