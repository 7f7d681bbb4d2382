/** Seeds the folder and torrent of the command line until it is killed; prints its port, and its memory when asked by SIGUSR2. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { systemClock } from '../../src/actor/clock.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { Seeder } from '../../src/torrent/seeder.js'
import { readTorrent } from '../../src/torrent/torrent-reader.js'

const [file = '', folder = ''] = process.argv.slice(2)
const torrent = readTorrent(readFileSync(file))
if ('refused' in torrent) throw new Error(torrent.message)
const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
const seeder = new Seeder(
  {
    host: '127.0.0.1',
    port: 0,
    peersMax: 100,
    peersPerAddressMax: 100,
    slotsMax: 50,
    slotMs: 30_000,
    upload: { bytesPerSecond: 0, bytesPerDay: 0 },
    line: connectionDefaults,
    encryption: 'accept',
  },
  systemClock,
  meters,
)
seeder.offer([{ torrent, path: (name) => join(folder, name) }])
process.stdout.write(`listening ${await seeder.listen()}\n`)
// From /proc, because ru_maxrss begins with the peak of the parent process.
const peak = (): number => {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024
}
process.on('SIGUSR2', () => process.stdout.write(`rss ${peak()}\n`))
