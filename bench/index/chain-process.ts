import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { idBytes } from '../../src/format/id.js'
import { Chain, messagesOf } from './chain.js'

/** Blocks that are made at once: what the process that reads them holds of them is not the index's memory. */
const blocksAtOnce = 4

/** Some blocks, each as its messages to the keeper; an item and a bundle of each. */
export interface MadeBlocks {
  readonly blocks: readonly (readonly IndexRequest[])[]
  readonly ids: readonly Uint8Array[]
  readonly bundles: readonly Uint8Array[]
}

export function chainOf(items: number): Chain {
  return new Chain({ items, itemsPerBundle: 1000, bundlesPerBlock: 2, seed: 1 })
}

/** The made-up chain, made by a process of its own: neither its time nor its memory counts where it is read. */
export async function* madeElsewhere(items: number): AsyncGenerator<MadeBlocks> {
  const path = fileURLToPath(import.meta.url)
  const child: ChildProcess = fork(path, ['--make', String(items)], { serialization: 'advanced' })
  try {
    for (;;) {
      child.send('more')
      const [made] = (await once(child, 'message')) as [MadeBlocks | 'end']
      if (made === 'end') return
      // Views of the message would keep all of it in memory.
      const [ids, bundles] = [made.ids.map(copied), made.bundles.map(copied)]
      yield { blocks: made.blocks, ids, bundles }
    }
  } finally {
    child.kill()
  }
}

function copied(bytes: Uint8Array): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes)
}

function make(items: number): void {
  const blocks = chainOf(items).blocks()
  process.on('message', () => {
    const made: { blocks: IndexRequest[][]; ids: Uint8Array[]; bundles: Uint8Array[] } = {
      blocks: [],
      ids: [],
      bundles: [],
    }
    while (made.blocks.length < blocksAtOnce) {
      const { value, done } = blocks.next()
      if (done === true) break
      made.blocks.push(messagesOf(value))
      const [some] = value.bundles
      const id = some?.items[0]?.id
      if (some === undefined || id === undefined) continue
      made.ids.push(idBytes(id))
      made.bundles.push(idBytes(some.rootId))
    }
    process.send?.(made.blocks.length === 0 ? 'end' : made)
  })
}

if (process.argv[2] === '--make') make(Number(process.argv[3]))
