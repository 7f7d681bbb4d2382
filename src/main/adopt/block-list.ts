import { moderationPath, type Subject } from '../../moderation/moderation-messages.js'
import { ModerationStore } from '../../moderation/moderation-store.js'
import { readSubject } from '../../moderation/subject.js'
import { blockedOf, type PeerBlocked, PeerDatabase } from './peer-database.js'

/** Entries of one transaction. */
const batchMax = 5000

export interface AdoptedBlocks {
  readonly added: number
  /** Blocked here before. */
  readonly known: number
  /** Entries that name nothing that can be requested. */
  readonly unreadable: number
}

/**
 * Adds every entry of the reference gateway's `moderation.db` to the block list below `root`, with its source and notes. What is
 * blocked already is left as it is, so that a second call adds what a first one, killed, did not. `onEntry` hears of each one.
 */
export async function adoptBlocks(
  file: string,
  root: string,
  nowSeconds: number,
  by: string,
  onEntry: (done: number) => void,
): Promise<AdoptedBlocks> {
  const database = await PeerDatabase.open(file, root)
  const store = new ModerationStore(moderationPath(root))
  let [added, known, unreadable, done] = [0, 0, 0, 0]
  let batch: { subject: Subject; entry: PeerBlocked }[] = []
  const flush = (): void => {
    const grounds = new Map<string, typeof batch>()
    for (const one of batch) {
      const ground = JSON.stringify([one.entry.source, one.entry.notes])
      grounds.set(ground, [...(grounds.get(ground) ?? []), one])
    }
    for (const same of grounds.values()) {
      const [first] = same
      if (first === undefined) continue
      const { source, notes } = first.entry
      const fresh = store.block(
        same.map(({ subject }) => subject),
        { source, notes },
        nowSeconds,
      )
      added += fresh.length
      known += same.length - fresh.length
    }
    batch = []
  }
  try {
    for (const entry of blockedOf(database)) {
      const subject = readSubject(entry.kind, entry.key)
      if (typeof subject === 'string') unreadable += 1
      else batch.push({ subject, entry })
      if (batch.length === batchMax) flush()
      done += 1
      onEntry(done)
    }
    flush()
    store.note({ atSeconds: nowSeconds, by, action: 'import', what: `${added} entries of ${file}` })
    return { added, known, unreadable }
  } finally {
    database.close()
    await store.close()
  }
}
