import type { Log } from '../actor/log.js'
import { DurableLog } from '../store/segments/durable-log.js'
import type { LogPlace } from '../store/segments/log-file.js'
import { keepUnsettled } from './credit-charging.js'
import type { AcceptedItem, LoggedUpload, Uploads } from './uploads.js'

/** 256 KiB: a hundred uploaders of anything smaller take 25 MiB of memory. */
const options = { fileBytes: 268_435_456, sharedMaxBytes: 262_144, growBytes: 67_108_864 }

/**
 * Opens the log of accepted items, and brings the tables up to it: after a power cut the log may know more than they do. Bytes
 * that are not needed any more are released again.
 */
export async function openIntake(folder: string, uploads: Uploads, log: Log): Promise<DurableLog> {
  const lost: AcceptedItem[] = []
  const released: LogPlace[] = []
  const intake = await DurableLog.open(folder, options, ({ place, meta }) => {
    const logged = JSON.parse(Buffer.from(meta).toString()) as LoggedUpload
    const known = uploads.find(logged.id)
    if (known === undefined) lost.push({ ...logged, place })
    // The same item once more: it was refused after its bytes were written.
    else if (
      known.released === true ||
      known.place.file !== place.file ||
      known.place.offset !== place.offset
    )
      released.push(place)
  })
  for (const place of released) intake.release(place)
  if (lost.length > 0) {
    log.warn(
      { items: lost.length },
      'uploads were in the log alone: a power cut, or a kill between two steps',
    )
    uploads.accept(lost, () => {
      for (const { id, winc } of lost) if (winc !== '0') keepUnsettled(uploads.environment, id)
    })
  }
  const { damaged } = intake.found
  if (damaged.length > 0) log.error({ damaged }, 'the log of uploads is damaged: items in it may be lost')
  return intake
}
