import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const script = fileURLToPath(new URL('crowded.js', import.meta.url))

t.test('a thread that cannot be looked at keeps its locks', async (t) => {
  const command = 'ulimit -n 100 && exec "$0" "$1"'
  const output = execFileSync('sh', ['-c', command, process.execPath, script], { encoding: 'utf8' })
  t.strictSame(JSON.parse(output), { crowded: true, own: true, ended: false })
})
