import { parseId } from '../format/id.js'
import type { GrowingLayer, PostReply } from './base-layer.js'
import { jsonReply, type NodeReply, textReply } from './node-reply.js'

/** Blocks of one call, so that it does not block the thread for long. */
const blocksMax = 1_000

/** Answers what changes the chain; undefined where no route has this path. `body` is the text of a POST. */
export function write(
  layer: GrowingLayer,
  method: string,
  segments: readonly string[],
  body: string,
): NodeReply | undefined {
  const [first, ...rest] = segments
  if (method === 'POST' && rest.length === 0 && first === 'tx') return posted(body, (it) => layer.submit(it))
  if (method === 'POST' && rest.length === 0 && first === 'chunk') {
    return posted(body, (it) => layer.submitChunk(it))
  }
  if (first === 'mint') return mint(layer, rest)
  if (first === 'mine') return mine(layer, rest)
  if (method === 'POST' && first === 'devnet' && rest[0] === 'fork') return fork(layer, rest.slice(1))
  return undefined
}

function posted(body: string, act: (json: unknown) => PostReply): NodeReply {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return jsonReply({ error: 'invalid_json' }, 400)
  }
  const verdict = act(value)
  return {
    status: verdict.status,
    type: verdict.body.startsWith('{') ? 'application/json' : 'text/plain',
    body: verdict.body,
  }
}

function mint(
  layer: GrowingLayer,
  [name = '', amount = '', ...more]: readonly string[],
): NodeReply | undefined {
  const address = parseId(name)
  if (more.length > 0) return undefined
  if (address === undefined || !/^[0-9]{1,24}$/.test(amount))
    return textReply('Invalid address or amount.', 400)
  return textReply(layer.mint(address, BigInt(amount)).toString())
}

function mine(layer: GrowingLayer, [count = '1', ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const blocks = countOf(count)
  if (blocks === undefined) return textReply('Invalid number of blocks.', 400)
  layer.mine(blocks)
  return jsonReply(layer.info())
}

function fork(layer: GrowingLayer, [count = '', ...more]: readonly string[]): NodeReply | undefined {
  if (more.length > 0) return undefined
  const depth = countOf(count)
  if (depth === undefined || depth > layer.height()) return textReply('Invalid depth.', 400)
  layer.fork(depth)
  return jsonReply(layer.info())
}

function countOf(word: string): number | undefined {
  const count = /^[0-9]{1,4}$/.test(word) ? Number(word) : 0
  return count >= 1 && count <= blocksMax ? count : undefined
}
