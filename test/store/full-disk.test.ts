/** A disk that is full for some time does not end a process that has a database there. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const child = fileURLToPath(new URL('full-disk-child.js', import.meta.url))
const mount = 'mount -t tmpfs -o size=48m none "$0"'
const alone = ['--map-root-user', '--mount', 'sh', '-c']
const isAble = spawnSync('unshare', [...alone, mount, t.testdir()]).status === 0
const skip = !isAble && 'nobody may mount a file system here'

t.test('changes are refused while it is full, and taken afterwards', { skip }, async (t) => {
  const script = `${mount} && exec "$@"`
  const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
  const folder = t.testdir()
  const words = [...alone, script, folder, process.execPath, ...conditions, child, folder]
  const { status, signal, stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8' })
  t.strictSame({ status, signal, stderr }, { status: 0, signal: null, stderr: '' })
  t.strictSame(JSON.parse(stdout), { written: 2, refused: 500, rows: 20 })
})
