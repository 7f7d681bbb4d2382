/** A subscriber that does one round, for a test that kills it: URL, KEY, FOLDER. Says `begun`, later `done`. */
import { randomBytes } from 'node:crypto'
import { Agent } from 'undici'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { BandStore } from '../../src/bands/band-store.js'
import { PinnedKeys } from '../../src/bands/publisher-keys.js'
import { Subscriber } from '../../src/bands/subscriber.js'
import { downloadDefaults } from '../../src/torrent/download.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { plainKind } from './publisher-rig.js'

const [url = '', keyId = '', folder = ''] = process.argv.slice(2)
const bandStore = new BandStore(folder)
await bandStore.prepare()
const subscriber = await Subscriber.open(
  {
    subscriptions: [{ url, keyId }],
    domains: ['gateway-index-publication/v1'],
    pollMs: 1000,
    graceMs: 0,
    bytesMax: 2 ** 30,
    bandsAtOnce: 2,
  },
  {
    http: { dispatcher: new Agent(), timeoutMs: 5000, userAgent: 'test' },
    clock: systemClock,
    peerId: randomBytes(20),
    download: { ...downloadDefaults, webAfterMs: 60_000, line: connectionDefaults },
    trackers: [],
    bandStore,
    kinds: [plainKind],
    keys: new PinnedKeys(),
    log: silentLog,
  },
)
process.stdout.write('begun\n')
await subscriber.poll()
await subscriber.settled()
process.stdout.write('done\n')
process.exit(0)
