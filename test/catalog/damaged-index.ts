/** Indexes whose stable rows are in segments, and damage that is done to them. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { ChainBlock } from '../../bench/index/chain.js'
import { Generations } from '../../src/catalog/generations.js'
import { compactIndex } from '../../src/catalog/index-compact.js'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import type { FlushLimits } from '../../src/catalog/segment-upkeep.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { blockMessage, itemsMessage, openHouse } from './index-model.js'

export const messagesOf = ({ block, transactions, bundles }: ChainBlock): IndexRequest[] => [
  blockMessage(block, transactions),
  ...bundles.map(({ rootId, items }) => itemsMessage(rootId, items)),
]

/** The made-up owners of the bench have addresses of their own. */
export const faultsIn = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

/** The folder of an index of these blocks. */
export async function filled(blocks: readonly ChainBlock[], limits: FlushLimits): Promise<string> {
  const house = openHouse()
  for (let at = 0; at < blocks.length; at += 50)
    await house.apply(blocks.slice(at, at + 50).flatMap(messagesOf))
  await house.close()
  const { environment } = openCatalogTables(house.path)
  compactIndex(openIndexTables(environment), limits)
  await environment.close()
  return house.path
}

export function opened(path: string) {
  const { environment } = openCatalogTables(path)
  const generations = new Generations()
  const tables = openIndexTables(environment)
  return { environment, tables, generations, index: new ChainIndex(environment, generations) }
}

/** Flips a bit of a segment with this number. */
export function flipBit(path: string, number: number, at: number): void {
  const file = openSync(join(path, 'segments', `segment-${number}`), 'r+')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, at)
  byte[0] = (byte[0] as number) ^ 16
  writeSync(file, byte, 0, 1, at)
  closeSync(file)
}

export function logOf() {
  const lines: { readonly about: object; readonly words: string | undefined }[] = []
  const note = (about: object, words?: string): void => void lines.push({ about, words })
  return { lines, log: { info: () => undefined, warn: note, error: note } }
}

export const unseen = <Row extends { readonly seenSeconds: number }>(all: readonly Row[]): Row[] =>
  all.map((row) => ({ ...row, seenSeconds: 0 }))
