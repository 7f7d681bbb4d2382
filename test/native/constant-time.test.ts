/** No branch and no address in signing depends on the secret: seen by valgrind, to which the secret is memory never written. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const source = fileURLToPath(new URL('../../../test/native/constant-time.cc', import.meta.url))
const missing = ['g++', 'valgrind'].filter((tool) => spawnSync(tool, ['--version']).error !== undefined)
const skip = missing.length > 0 && `not installed here: ${missing.join(', ')}`

t.test('signing with Ed25519', { skip }, async (t) => {
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
