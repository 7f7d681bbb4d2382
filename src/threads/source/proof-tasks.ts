import { keepHeartbeat } from '../../actor/heartbeats.js'
import { ranks, stepBack } from '../../actor/priority.js'
import type { ItemHeader } from '../../format/item.js'
import type { Refusal } from '../../format/refusal.js'
import { judgeItems, type SignedMessage } from '../../ingest/item-judge.js'
import { faultOfPosted } from '../../proof/posted-transaction.js'
import { InlinePacker, type PackingOutcome, type PackingTask } from '../../source/keeping/manifest-packer.js'
import { InlineProver, type JudgedPayloads, type PayloadClaim } from '../../source/proving/prover.js'
import type { FilePart } from '../../store/blobs.js'

/** One thread of the pool that hashes and verifies; Piscina calls the exported functions by name. */
stepBack(ranks.proof)
// A series of short tasks leaves the event loop no turn, so each task writes a heartbeat.
const beat = keepHeartbeat('proof')
const prover = new InlineProver()
const packer = new InlinePacker()

/** Same as `BlobProver.digest`. */
export function digest({ part }: { part: FilePart }): Promise<Uint8Array | undefined | Refusal> {
  beat()
  return prover.digest(part)
}

/** What is wrong with a posted transaction (JSON); undefined: nothing. */
export function postedFault({ body }: { body: Uint8Array }): string | undefined {
  beat()
  return faultOfPosted(body)
}

/** Same as `BlobProver.dataRoot`. */
export function dataRoot(task: {
  part: FilePart
  sizeBytes: number
}): Promise<Uint8Array | undefined | Refusal> {
  beat()
  return prover.dataRoot(task.part, task.sizeBytes)
}

/** Same as `BlobProver.isPayload`. */
export function isPayload(task: {
  part: FilePart
  header: ItemHeader
}): Promise<boolean | undefined | Refusal> {
  beat()
  return prover.isPayload(task.part, task.header)
}

/** Same as `BlobProver.arePayloads`. */
export function arePayloads({ claims }: { claims: readonly PayloadClaim[] }): Promise<JudgedPayloads> {
  beat()
  return prover.arePayloads(claims)
}

/** Packs a manifest. */
export function packText(task: PackingTask): Promise<PackingOutcome> {
  beat()
  return packer.pack(task)
}

/** Whether a packed manifest is that of its text. */
export function checkPacked(task: Parameters<InlinePacker['check']>[0]): Promise<boolean> {
  beat()
  return packer.check(task)
}

/** Checks the signatures of items, in their order. */
export function items(task: { items: readonly SignedMessage[] }): (true | Refusal)[] {
  beat()
  return judgeItems(task.items)
}
