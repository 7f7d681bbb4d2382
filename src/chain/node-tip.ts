import { isRefusal, type Refusal } from '../format/refusal.js'
import type { StatedTip } from './agreed-tip.js'
import { blockHeightOf } from './json-fields.js'
import type { NodeRequest } from './node.js'
import { readAnchor, readBlock } from './node-answers.js'
import { type NodeRead, readAgreeing, readWith } from './node-reads.js'

const wordMaxBytes = 1000
const blockMaxBytes = 16 << 20

export const heightRequest: NodeRequest = { path: '/height', maxBytes: wordMaxBytes }
const anchorRequest: NodeRequest = { path: '/tx_anchor', maxBytes: wordMaxBytes }

/** Where the chain of one node ends. `ask`: one question to that node. */
export async function statedTip(
  node: string,
  ask: <T>(question: NodeRequest, read: NodeRead<T>) => Promise<T | Refusal>,
): Promise<StatedTip | Refusal> {
  const [height, anchor] = await Promise.all([
    ask(heightRequest, readWith(blockHeightOf)),
    ask(anchorRequest, readWith(readAnchor)),
  ])
  if (isRefusal(height)) return height
  if (isRefusal(anchor)) return anchor
  const heightOf: StatedTip['heightOf'] = async (hash) => {
    const question = { path: `/block/hash/${hash}`, maxBytes: blockMaxBytes }
    const block = await ask(
      question,
      readAgreeing(readBlock, (one) => one.hash === hash),
    )
    return isRefusal(block) ? block : block.height
  }
  return { node, height, anchor, heightOf }
}
