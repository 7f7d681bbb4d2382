/** The disk of the node is full for some time: it refuses in plain words, and goes on without a start. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { eventually } from '../eventually.js'
import { fillDisk } from '../fill-disk.js'
import { jsonOf } from './posting.js'

const child = fileURLToPath(new URL('./mining-node.js', import.meta.url))
const own = ['--map-root-user', '--mount', 'sh', '-c'] as const
const mount = 'mount -t tmpfs -o size=64m none "$0"'
const isAble = spawnSync('unshare', [...own, mount, t.testdir()]).status === 0
const skip = !isAble && 'nobody may mount a file system here'

t.test('a node whose disk is full refuses, mines nothing, and goes on afterwards', { skip }, async (t) => {
  const folder = t.testdir()
  const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
  const words = [process.execPath, ...conditions, child, folder]
  const running = spawn('unshare', [...own, `${mount} && exec "$@"`, folder, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => running.kill('SIGKILL'))
  const lines = createInterface({ input: running.stdout })
  const [url] = (await once(lines, 'line')) as [string]
  const height = async (): Promise<number> => ((await jsonOf(`${url}/info`)) as { height: number }).height
  await eventually('blocks are mined', async () => (await height()) > 2)
  const filler = join(`/proc/${running.pid}/root`, folder, 'filler')
  fillDisk(filler)
  const minted = (): Promise<Response> => fetch(`${url}/mint/${'A'.repeat(43)}/5`)
  const refused = await minted()
  t.equal(refused.status, 503)
  t.match(await refused.text(), /disk of this node is full/)
  const before = await height()
  await eventually('the disk is full', async () => (await fetch(`${url}/mine/2`)).status === 503)
  t.equal(await height(), before, 'no block was mined')
  rmSync(filler)
  await eventually('blocks are mined again', async () => (await height()) > before)
  t.equal((await minted()).status, 200)
})
