import type { ItemHeader } from '../src/format/item.js'
import { InlineProver } from '../src/source/prover.js'

/** One hand of the pool that hashes and verifies files; Piscina calls these by name. */
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
