import { randomBytes } from 'node:crypto'
import { Agent } from 'undici'
import { createLog } from '../actor/log.js'
import { BandStore } from '../bands/band-store.js'
import { openSubscriber } from '../bands/open-subscriber.js'
import type { Band } from '../bands/publication.js'
import { type SubscriberSetup, swarmDefaults } from '../bands/subscriber-options.js'
import { oneLine } from './one-line.js'
import { paint } from './paint.js'

/**
 * Fetches, once, what others publish, into `bandsPath`; a later call goes on where this one was stopped. `wants` selects
 * bands. Prints what was refused; true where everything was fetched. The data folder must be claimed.
 */
export async function fetchPublished(
  given: SubscriberSetup,
  bandsPath: string,
  wants?: (band: Band) => boolean,
): Promise<boolean> {
  const dispatcher = new Agent({ connections: swarmDefaults.connectionsMax })
  const bandStore = new BandStore(bandsPath)
  try {
    await bandStore.prepare()
    const log = createLog('info', 'bands')
    const subscriber = await openSubscriber(given, {
      dispatcher,
      peerId: randomBytes(20),
      bandStore,
      log,
      wants,
    })
    await subscriber.poll()
    await subscriber.settled()
    await subscriber.stop()
    const { faults, missing } = subscriber
    for (const fault of faults) process.stderr.write(`${paint('red', 'refused')}  ${oneLine(fault)}\n`)
    for (const band of missing) process.stderr.write(`${paint('red', 'missing')}  ${oneLine(band)}\n`)
    return faults.length + missing.length === 0
  } finally {
    await dispatcher.destroy()
  }
}
