import { randomBytes } from 'node:crypto'
import t from 'tap'
import {
  decodeDirectory,
  decodeGroupHead,
  encodeGroupHead,
  type GroupItem,
} from '../../../src/upload/stored/group-format.js'
import { decodeGroupName, encodeGroupName, StoredKeys } from '../../../src/upload/stored/stored-keys.js'
import { madeItem } from '../../conformance/kept-uploads.js'
import { random } from '../../property.js'

const key = Buffer.alloc(32, 5)

function group(count: number): { items: GroupItem[]; totalBytes: number; bytes: Buffer } {
  const items = Array.from({ length: count }, (_, at) => {
    const { id, bytes, digest, headerSize, logged } = madeItem(100 + at)
    const meta = Buffer.from(JSON.stringify(logged))
    const contentType = at % 3 === 0 ? '' : 'text/plain'
    return { id, digest: at % 5 === 0 ? randomBytes(32) : digest, headerSize, meta, contentType, bytes }
  })
  const sized = items.map(({ bytes, ...item }) => ({ ...item, sizeBytes: bytes.length }))
  const head = encodeGroupHead(sized, key)
  const bytes = Buffer.concat([head.bytes, ...items.map((item) => item.bytes)])
  t.ok(
    items.every((item, at) =>
      bytes.subarray(head.offsets[at]).subarray(0, item.bytes.length).equals(item.bytes),
    ),
  )
  return { items: sized, totalBytes: bytes.length, bytes }
}

t.test('a head says what was put', async (t) => {
  for (const count of [0, 1, 2, 300]) {
    const { items, totalBytes, bytes } = group(count)
    const found = decodeGroupHead(bytes, totalBytes, key)
    t.equal(found?.length, count)
    for (const [at, { meta, sizeBytes, ...item }] of items.entries()) {
      const one = found?.[at]
      t.match(one, { ...item, sizeBytes })
      t.ok(Buffer.from(one?.meta ?? []).equals(meta))
    }
    t.equal(decodeDirectory(bytes, totalBytes)?.length, count)
  }
})

t.test('what others have sealed, and what was changed, is not believed', async (t) => {
  const { totalBytes, bytes } = group(20)
  t.equal(decodeGroupHead(bytes, totalBytes, Buffer.alloc(32, 6)), undefined)
  const headBytes = bytes.readUInt32LE(8)
  for (let turn = 0; turn < 500; turn += 1) {
    const changed = Buffer.from(bytes)
    const at = Math.floor(random() * headBytes)
    changed[at] = (changed[at] ?? 0) ^ (1 << Math.floor(random() * 8))
    t.equal(decodeGroupHead(changed, totalBytes, key), undefined)
    // Without the seal it may be believed, but never throws.
    decodeDirectory(changed, totalBytes)
  }
  for (let cut = 0; cut < headBytes; cut += 7)
    t.equal(decodeGroupHead(bytes.subarray(0, cut), totalBytes, key), undefined)
  t.equal(decodeGroupHead(bytes, totalBytes + 1, key), undefined, 'of an object of another length')
})

t.test('names are in the order of time', async (t) => {
  const name = {
    atMs: 1_700_000_000_000,
    directoryBytes: 50,
    headBytes: 90,
    totalBytes: 1000,
    random: 'a'.repeat(16),
  }
  const one = encodeGroupName({ ...name, node: 'zz-9.example' })
  const later = encodeGroupName({ ...name, atMs: name.atMs + 1, node: 'a' })
  t.ok(one < later)
  t.strictSame(decodeGroupName(one), { ...name, node: 'zz-9.example' })
  const keys = new StoredKeys('p')
  t.ok(keys.since(name.atMs) < keys.group(one) && keys.group(one) < keys.since(name.atMs + 1))
  t.ok(keys.group(later) < keys.node('a'), 'nodes come behind all groups')
  t.equal(keys.nameOf(keys.group(one)), one)
  t.equal(keys.nodeOf(keys.node('a')), 'a')
  for (const text of [
    '',
    'x',
    one.replace('-', '_'),
    `${one}/`,
    one.slice(1),
    encodeGroupName({ ...name, headBytes: 9, node: 'a' }),
  ])
    t.equal(decodeGroupName(text), undefined, text)
})
