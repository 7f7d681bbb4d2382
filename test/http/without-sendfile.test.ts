import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { preloading } from '../native/preload.js'

/** Where the system has no sendfile, all that the tests of bodies from files expect holds, too. */

const tests = fileURLToPath(new URL('from-file.test.js', import.meta.url))
const env = preloading('no-sendfile')

t.test('bodies are sent out of memory then', { skip: env === undefined }, (t) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...process.execArgv, tests], {
    env,
    encoding: 'utf8',
  })
  if (status !== 0) t.comment(`${stdout}${stderr}`.slice(-4000))
  t.equal(status, 0)
  t.end()
})
