import type { Line } from './line.js'
import type { Vocabulary } from './vocabulary.js'

/** Which header lines a signature covers, and which are a reason to sign the answer. */
export interface Covered {
  /** Lower-case name and value, in the order of the answer. */
  readonly lines: readonly Line[]
  /** True where at least one line says something about trust: only then the answer is signed. */
  readonly worthSigning: boolean
}

const triggers = {
  gateway: [
    'data-id',
    'verified',
    'stable',
    'trusted',
    'root-transaction-id',
    'chunk-source-type',
    'index-publication',
    'index-file',
    'index-feed',
  ],
  chain: ['owner-address', 'tags-truncated', 'chunk-data-root', 'chunk-tx-id'],
  names: [
    'name',
    'resolved-id',
    'ttl-seconds',
    'ant-program-id',
    'ant-id',
    'basename',
    'record',
    'resolved-at',
    'undername-limit',
    'record-index',
  ],
}

/** Signed where they are present, but an answer with these lines alone is not signed. */
const companions = {
  plain: ['content-type', 'content-digest', 'repr-digest'],
  gateway: ['root-data-item-offset', 'root-data-offset', 'root-item-offset', 'root-item-size'],
}

/** What is known of a header name. */
interface NamePart {
  readonly lower: string
  readonly isCovered: boolean
  readonly isTrigger: boolean
}

/** Names remembered: those that this program writes are few, those of tags are anybody's and are not remembered. */
const rememberedMax = 256

/**
 * Returns a function that selects the covered lines of an answer, for one vocabulary; made once and used for every
 * answer.
 */
export function coverage(words: Vocabulary): (lines: readonly Line[]) => Covered {
  const under = (prefix: string, suffixes: readonly string[]): string[] =>
    suffixes.map((suffix) => prefix.toLowerCase() + suffix)
  const trigger = new Set([
    ...under(words.gateway, triggers.gateway),
    ...under(words.chain, triggers.chain),
    ...under(words.names, triggers.names),
  ])
  const companion = new Set([...companions.plain, ...under(words.gateway, companions.gateway)])
  const tag = `${words.chain.toLowerCase()}tag-`
  const remembered = new Map<string, NamePart>()
  const partOf = (name: string): NamePart => {
    const lower = name.toLowerCase()
    const isTrigger = trigger.has(lower)
    const isTag = lower.startsWith(tag)
    const part = { lower, isTrigger, isCovered: isTrigger || isTag || companion.has(lower) }
    if (!isTag && remembered.size < rememberedMax) remembered.set(name, part)
    return part
  }
  return (lines) => {
    const covered: Line[] = []
    let worthSigning = false
    for (const [name, value] of lines) {
      const part = remembered.get(name) ?? partOf(name)
      if (part.isTrigger) worthSigning = true
      if (part.isCovered) covered.push([part.lower, value])
    }
    return { lines: covered, worthSigning }
  }
}

/**
 * The lines of a 304 (RFC 9110 section 15.4.5): caches put them in the place of those that they keep (RFC 9111 section 3.2). So
 * it has no line that a signature covers, and no signature: that which is kept goes on to belong to the lines that are kept.
 */
export function linesOfUnchanged(lines: readonly Line[], covered: Covered): readonly Line[] {
  const signed = new Set(covered.lines.map(([name]) => name))
  return lines.filter(([name]) => !signed.has(name.toLowerCase()))
}
