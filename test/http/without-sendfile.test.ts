import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { scratch } from '../scratch.js'

/** Where the system has no sendfile, all that the tests of bodies from files expect holds, too. */

const source = fileURLToPath(new URL('../../../test/native/no-sendfile.cc', import.meta.url))
const tests = fileURLToPath(new URL('from-file.test.js', import.meta.url))
const library = join(scratch('without-sendfile'), 'no-sendfile.so')
const compiled = spawnSync('c++', ['-shared', '-fPIC', source, '-o', library], { encoding: 'utf8' })
const able = compiled.error === undefined && compiled.status === 0
if (!able) t.comment(`no compiler: ${compiled.stderr ?? ''}`)

t.test('bodies are sent out of memory then', { skip: !able }, (t) => {
  // A sanitizer's library must stay the first.
  const before = process.env.LD_PRELOAD
  const env = { ...process.env, LD_PRELOAD: before === undefined ? library : `${before}:${library}` }
  const { status, stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, tests], {
    env,
    encoding: 'utf8',
  })
  if (status !== 0) t.comment(`${stdout}${stderr}`.slice(-4000))
  t.equal(status, 0)
  t.end()
})
