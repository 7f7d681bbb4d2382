import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { idBytes } from '../../src/format/id.js'
import { Chain, messagesOf } from './chain.js'
import { type MadeBlock, repeatedBlocks } from './repeated-chain.js'

/** Blocks that are made at once: what the process that reads them holds of them is not the index's memory. */
const blocksAtOnce = 4

/** Some blocks, each as its messages to the keeper; an item and a bundle of each. */
export interface MadeBlocks {
  readonly blocks: readonly (readonly IndexRequest[])[]
  readonly ids: readonly Uint8Array[]
  readonly bundles: readonly Uint8Array[]
}

/** Bundles of 1000 items, two of them a block where nothing else is given. */
export function chainOf(items: number, bundlesPerBlock = 2): Chain {
  return new Chain({ items, itemsPerBundle: 1000, bundlesPerBlock, seed: 1 })
}

/** How a chain is made: each row by itself, or by blocks that are repeated (repeated-chain.ts). */
export interface ChainWay {
  readonly bundlesPerBlock?: number
  readonly isRepeated?: boolean
}

/** The made-up chain, made by a process of its own: neither its time nor its memory counts where it is read. */
export async function* madeElsewhere(items: number, way: ChainWay = {}): AsyncGenerator<MadeBlocks> {
  const path = fileURLToPath(import.meta.url)
  const child: ChildProcess = fork(path, ['--make', String(items), JSON.stringify(way)], {
    serialization: 'advanced',
  })
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

function* blocksOf(
  items: number,
  { bundlesPerBlock = 2, isRepeated = false }: ChainWay,
): Generator<MadeBlock> {
  if (isRepeated) yield* repeatedBlocks(items, bundlesPerBlock)
  else {
    for (const made of chainOf(items, bundlesPerBlock).blocks()) {
      const [some] = made.bundles
      const id = some?.items[0]?.id
      if (some === undefined || id === undefined) continue
      yield { messages: messagesOf(made), id: idBytes(id), bundle: idBytes(some.rootId) }
    }
  }
}

function make(items: number, way: ChainWay): void {
  const blocks = blocksOf(items, way)
  process.on('message', () => {
    const made: MadeBlock[] = []
    while (made.length < blocksAtOnce) {
      const { value, done } = blocks.next()
      if (done === true) break
      made.push(value)
    }
    const all: MadeBlocks = {
      blocks: made.map(({ messages }) => messages),
      ids: made.map(({ id }) => id),
      bundles: made.map(({ bundle }) => bundle),
    }
    process.send?.(made.length === 0 ? 'end' : all)
  })
}

if (process.argv[2] === '--make')
  make(Number(process.argv[3]), JSON.parse(process.argv[4] ?? '{}') as ChainWay)
