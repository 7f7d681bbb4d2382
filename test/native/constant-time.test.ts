/** No branch and no address in signing depends on the secret: seen by valgrind, to which the secret is memory never written. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const missing = ['g++', 'valgrind'].filter((tool) => spawnSync(tool, ['--version']).error !== undefined)
const skip = missing.length > 0 && `not installed here: ${missing.join(', ')}`

for (const curve of ['ed25519', 'secp256k1'])
  t.test(`signing with ${curve}`, { skip }, async (t) => {
    const source = fileURLToPath(new URL(`../../../test/native/constant-${curve}.cc`, import.meta.url))
    const program = join(t.testdir(), 'constant-time')
    const compiled = spawnSync('g++', ['-std=c++17', '-O2', '-fPIC', source, '-o', program], {
      encoding: 'utf8',
    })
    t.equal(compiled.status, 0, compiled.stderr)
    const watched = (word: string) =>
      spawnSync('valgrind', ['--quiet', '--error-exitcode=9', program, word], { encoding: 'utf8' })
    const { status, stdout, stderr } = watched('')
    t.equal(status, 0, stderr)
    t.equal(stdout, 'signed\n')
    t.equal(watched('branch').status, 9, 'what does depend on the secret is seen')
  })
