import { ranks, stepBack } from '../src/actor/priority.js'
import type { ItemHeader } from '../src/format/item.js'
import type { Refusal } from '../src/format/refusal.js'
import { judgeItems, type SignedMessage } from '../src/ingest/item-judge.js'
import { InlineProver } from '../src/source/prover.js'

/** One hand of the pool that hashes and verifies; Piscina calls these by name. */
stepBack(ranks.proof)
const prover = new InlineProver()

export function digest({ path }: { path: string }): Promise<Uint8Array | undefined> {
  return prover.digest(path)
}

export function dataRoot(task: { path: string; sizeBytes: number }): Promise<Uint8Array | undefined> {
  return prover.dataRoot(task.path, task.sizeBytes)
}

export function isPayload(task: { path: string; header: ItemHeader }): Promise<boolean | undefined> {
  return prover.isPayload(task.path, task.header)
}

export function items(task: { items: readonly SignedMessage[] }): (true | Refusal)[] {
  return judgeItems(task.items)
}
