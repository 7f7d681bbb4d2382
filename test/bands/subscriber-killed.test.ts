/** `KILLS=20` kills so many times. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { random } from '../property.js'
import { plantBand, sameFiles, startSeeder } from '../torrent/swarm-rig.js'
import { TestPublisher } from './publisher-rig.js'

const kills = Number(process.env.KILLS ?? 5)
t.setTimeout(1_200_000 + kills * 5000)

t.test(
  'a subscriber that is killed while it fetches goes on where it was, and ends with the same files',
  async (t) => {
    const outer = t.testdir()
    const files = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`f${index}`, randomBytes(600_000 + index)]),
    )
    const band = await plantBand(join(outer, 'band'), { ...files, a: randomBytes(10) })
    const upload = { bytesPerSecond: 3_000_000, bytesPerDay: 0 }
    const { port, meters } = await startSeeder(t, [band], { upload })
    const publisher = new TestPublisher()
    const url = await publisher.listen()
    t.teardown(() => publisher.close())
    publisher.seederPort = port
    publisher.publish([{ id: 'band', files: band.files, torrent: band.torrent }])
    const folder = join(outer, 'bands')
    const installed = join(folder, 'installed', 'plain-index', 'band')
    const start = () => {
      const script = fileURLToPath(new URL('killed-subscriber.js', import.meta.url))
      const own = [script, url, publisher.signing.keyId, folder]
      return spawn(process.execPath, own, { stdio: ['ignore', 'pipe', 'inherit'] })
    }
    let halves = 0
    for (let index = 0; index < kills; index += 1) {
      const child = start()
      // It may be done before it is killed.
      const ended = once(child, 'exit')
      await Promise.race([once(child.stdout, 'data'), ended])
      await new Promise((resolve) => setTimeout(resolve, random() * 400))
      child.kill('SIGKILL')
      await ended
      const half = join(folder, 'fetching', 'plain-index', 'band', 'files')
      if (!existsSync(installed) && existsSync(half) && readdirSync(half).length > 0) halves += 1
    }
    t.comment(`${halves} of ${kills} kills left a band half there`)
    const child = start()
    await once(child, 'exit')
    sameFiles(t, band.files, installed)
    t.same(readdirSync(installed).sort(), Object.keys(band.files).sort())
    const bytes = Object.values(band.files).reduce((sum, file) => sum + file.length, 0)
    const sent = meters.total('torrent_sent_bytes_total')
    // What was on its way when it was killed is sent again: the pieces of two MiB, and what lay in the sockets.
    t.comment(`sent ${sent} bytes for ${bytes}`)
    t.ok(sent >= bytes)
  },
)
