/** Transactions and items that the network has, in blocks: answers out of ClickHouse beside those of the own index. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { BlockInput, ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { StableIndex } from '../../src/clickhouse/stable-index.js'
import { idBytes, idOfBytes, parseId } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { blockMessage, itemsMessage } from '../catalog/index-model.js'
import { clickhouseAbsent, startClickhouse } from '../engines/clickhouse.js'
import { fixture, fixtureLines, fixtureNames, fromBase64url } from '../fixture-file.js'
import { below, pick } from '../property.js'
import { openRig } from '../query/rig.js'
import type { Question } from '../query/sqlite/questions.js'
import { chance } from '../query/sqlite/story.js'
import { askerOf, compared, flush, push, quiet } from './both-answers.js'

const questions = Number(process.argv[2] ?? 30)

interface NodeTransaction {
  readonly id: string
  readonly format: number
  readonly last_tx: string
  readonly owner: string
  readonly target: string
  readonly quantity: string
  readonly reward: string
  readonly data_size: string
  readonly data_root: string
  readonly tags: readonly { readonly name: string; readonly value: string }[]
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

/** As the follower enters it. */
function inputOf(transaction: NodeTransaction, index: number): TransactionInput {
  const owner = fromBase64url(transaction.owner)
  return {
    id: idOfBytes(fromBase64url(transaction.id)),
    index,
    format: transaction.format,
    size: Number(transaction.data_size),
    owner,
    ownerAddress: sha256(owner),
    target: fromBase64url(transaction.target),
    anchor: fromBase64url(transaction.last_tx),
    tags: transaction.tags.map(({ name, value }) => ({
      name: fromBase64url(name),
      value: fromBase64url(value),
    })),
    quantity: BigInt(transaction.quantity),
    reward: BigInt(transaction.reward),
    dataRoot: fromBase64url(transaction.data_root),
    weaveEnd: 0,
  }
}

/** All items of the folder that have a header, as of one bundle. */
function itemsIn(root: TransactionInput): ItemInput[] {
  let offset = 0
  return fixtureNames('items').flatMap((name): ItemInput[] => {
    const bytes = fixture(`items/${name}`)
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) return []
    const { id, headerSize, owner, target, anchor, tags, signatureType } = header
    const place = { rootItemOffset: offset, parentItemOffset: offset, headerSize, parentId: root.id }
    offset += bytes.length
    const size = bytes.length - headerSize
    const ownerAddress = sha256(owner)
    return [{ id, size, owner, ownerAddress, target, anchor, tags, signatureType, ...place }]
  })
}

/** The chain: up to 12 transactions a block. */
function blocksOf(transactions: readonly NodeTransaction[]): [BlockInput, TransactionInput[]][] {
  const blocks: [BlockInput, TransactionInput[]][] = []
  const id = (height: number): string => createHash('sha384').update(`real ${height}`).digest('base64url')
  for (let at = 0; at < transactions.length; ) {
    const height = 100 + blocks.length
    const inputs = transactions.slice(at, at + below(13)).map(inputOf)
    at += inputs.length
    const about = { height, id: id(height), previous: id(height - 1), timestamp: 1_528_491_597 + height }
    blocks.push([{ ...about, weaveSize: '1', transactionCount: inputs.length }, inputs])
  }
  return blocks
}

type Row = TransactionInput | ItemInput
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** A question about what is there, most often. */
function questionAbout(rows: readonly Row[], bundle: string): Question {
  const some = (of: (row: Row) => string | undefined): string[] =>
    Array.from({ length: 1 + below(12) }, () => of(pick(rows))).filter((one) => one !== undefined)
  const tagged = rows.filter(({ tags }) => tags.length > 0)
  const tag = () => {
    const { name, value } = pick(pick(tagged).tags)
    const more = pick(pick(tagged).tags)
    const values = [
      Buffer.from(value).toString(),
      ...(chance(0.3) ? [Buffer.from(more.value).toString()] : []),
    ]
    return { name: Buffer.from(name).toString(), values, ...(chance(0.2) ? { op: 'NEQ' as const } : {}) }
  }
  const sort = pick(['HEIGHT_ASC', 'HEIGHT_DESC'] as const)
  const low = 95 + below(40)
  const args: Question['args'] = {
    sort,
    ...(chance(0.2) ? { ids: some(({ id }) => text(idBytes(id))) } : {}),
    ...(chance(0.3) ? { owners: some(({ ownerAddress }) => text(ownerAddress)) } : {}),
    ...(chance(0.15)
      ? { recipients: some(({ target }) => (target.length > 0 ? text(target) : text(Buffer.alloc(32)))) }
      : {}),
    ...(chance(0.4) ? { tags: Array.from({ length: 1 + below(2) }, tag) } : {}),
    ...(chance(0.3) ? { bundledIn: pick([null, [bundle], [bundle, 'A'.repeat(43)]]) } : {}),
    ...(chance(0.3) ? { block: { min: low, max: low + below(60) } } : {}),
  }
  return { kind: 'of the network', args, where: '', newestFirst: sort === 'HEIGHT_DESC' }
}

t.test('what the network has is answered as by the own index', clickhouseAbsent, async (t) => {
  const engine = await startClickhouse()
  const rig = await openRig([], { flush })
  t.teardown(async () => {
    await rig.close()
    await engine.stop()
  })
  const transactions = fixtureLines<NodeTransaction>('transactions.ndjson')
  const blocks = blocksOf(transactions)
  for (const [block, inputs] of blocks) await rig.apply([blockMessage(block, inputs)])
  const inputs = blocks.flatMap(([, all]) => all)
  const root = pick(inputs.slice(100, 200))
  const items = itemsIn(root)
  await rig.apply([itemsMessage(root.id, items)])
  // More blocks, so that all of these are stable.
  const [{ height, id }] = pick(blocks.slice(-1))
  for (let more = 1; more <= 12; more += 1) {
    const about = { height: height + more, id: `${more}`.padStart(64, 'b'), timestamp: 1_600_000_000 }
    const previous = more === 1 ? id : `${more - 1}`.padStart(64, 'b')
    await rig.apply([blockMessage({ ...about, previous, weaveSize: '1', transactionCount: 0 }, [])])
  }
  const rows: Row[] = [...inputs, ...items]
  t.ok(items.length >= 5, `${items.length} items`)
  let count = 0
  for (let look = 0; look < 2; look += 1) {
    const heights = await push(engine, rig)
    t.comment(`heights ${heights.from} to ${heights.to} of 100 to ${height + 12}`)
    const ask = askerOf(rig, new StableIndex(engine.client(), systemClock, quiet))
    for (let at = 0; at < questions; at += 1)
      count += await compared(rig, ask, questionAbout(rows, text(idBytes(root.id))))
    for (const one of rows.slice(-20)) {
      const about = `{ transaction(id: "${parseId(text(idBytes(one.id)))}") { id anchor recipient data { size }
        tags { name value } owner { address } block { id height } bundledIn { id } } }`
      t.strictSame(await ask(about), await rig.askInside(about))
    }
  }
  t.ok(count > questions, `${count} rows were compared`)
})
