import t from 'tap'
import { placeMaxBytes, type RootRecord, readPlace, writePlace } from '../../src/bands/root-record.js'
import { PackWriter } from '../../src/format/message-pack.js'
import { mutated } from '../fuzz/mutate.js'
import { fc } from '../property.js'

const aa = Buffer.alloc(32, 0xaa)

function packed(place: RootRecord): Buffer {
  const out = new PackWriter(Buffer.alloc(placeMaxBytes))
  writePlace(out, place)
  return Buffer.from(out.bytes.subarray(0, out.at))
}

function unpacked(bytes: Uint8Array): RootRecord | undefined {
  return readPlace(bytes, 0, bytes.length)
}

t.test('records are byte for byte those that are published', async (t) => {
  t.equal(packed({ path: [aa] }).toString('hex'), `81a172c420${aa.toString('hex')}`)
  const both = packed({ path: [aa], itemOffset: 1024, dataOffset: 1536 })
  t.equal(both.toString('hex'), `83a172c420${aa.toString('hex')}a169cd0400a164cd0600`)
  t.equal(both.length, 47)
  const large = packed({ path: [aa], itemOffset: 2 ** 32, dataOffset: 2 ** 32 + 1100 })
  t.match(large.toString('hex'), 'a169cb41f0000000000000')
  t.equal(large.length, 59)
  t.equal(
    packed({ path: [aa, aa] })
      .toString('hex')
      .slice(0, 10),
    '81a17092c4',
  )
})

t.test('integers are read in every form that holds one', async (t) => {
  const record = (i: string, d: string): Buffer =>
    Buffer.from(`83a172c420${aa.toString('hex')}a169${i}a164${d}`, 'hex')
  const forms: [string, number][] = [
    ['05', 5],
    ['cc80', 128],
    ['cd0100', 256],
    ['ce00010000', 65536],
    ['cf0000000100000000', 2 ** 32],
    ['cb41f0000000000000', 2 ** 32],
    ['d105dc', 1500],
  ]
  for (const [form, value] of forms) {
    t.equal(
      unpacked(record(form, 'ceffffffff'))?.itemOffset ?? unpacked(record('00', form))?.dataOffset,
      value,
    )
  }
  for (const form of [
    'cbc000000000000000',
    'cb3fe0000000000000',
    'cfffffffffffffffff',
    'd0ff',
    'c0',
    'a135',
  ]) {
    t.equal(unpacked(record('00', form)), undefined, `${form} is no offset`)
  }
})

t.test('what is written is read, whatever it says', async (t) => {
  const id = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes))
  const offset = fc.oneof(fc.nat(70_000), fc.maxSafeNat())
  const place = fc.record(
    { path: fc.array(id, { minLength: 1, maxLength: 10 }), i: offset, size: offset },
    { requiredKeys: ['path'] },
  )
  fc.assert(
    fc.property(place, ({ path, i, size }) => {
      const offsets = i === undefined ? {} : { itemOffset: Math.max(i, 1) - 1, dataOffset: Math.max(i, 1) }
      const given: RootRecord = { path, ...offsets, ...(size === undefined ? {} : { itemSize: size }) }
      t.strictSame(unpacked(packed(given)), given)
    }),
    { numRuns: 300 },
  )
})

t.test('keys that are not known are passed over, and nothing may follow', async (t) => {
  const extended = Buffer.from(`83a172c420${aa.toString('hex')}a178c3a4776f7264d90361626369`, 'hex')
  t.equal(unpacked(extended), undefined, 'a fourth key that was not announced')
  const known = Buffer.from(`82a172c420${aa.toString('hex')}a178a3616263`, 'hex')
  t.strictSame(unpacked(known), { path: [aa] })
  t.equal(unpacked(Buffer.concat([known, Buffer.from([0])])), undefined)
})

t.test('whatever a record holds, it is read as a place that can be or refused', async (t) => {
  const seeds = [
    packed({ path: [aa], itemOffset: 1024, dataOffset: 2 ** 40, itemSize: 7 }),
    packed({ path: [aa, aa, aa] }),
  ]
  fc.assert(
    fc.property(mutated(seeds), (input) => {
      const place = unpacked(input)
      if (place === undefined) return true
      const { path, itemOffset, dataOffset } = place
      const ordered = itemOffset === undefined || (dataOffset !== undefined && itemOffset < dataOffset)
      return ordered && path.length > 0 && path.length <= 10 && path.every((id) => id.length === 32)
    }),
    { numRuns: 3000 },
  )
  t.pass()
})

t.test('whatever stands under an unknown key is passed over', async (t) => {
  const record = (value: string): Buffer =>
    Buffer.from(`82a3616e79${value}a172c420${aa.toString('hex')}`, 'hex')
  const values = {
    'an array': '93010203',
    'a map': '82a16101a1629101',
    'an array of 16 bits': 'dc0002c0c3',
    'an array of 32 bits': 'dd0000000201c0',
    'a map of 16 bits': 'de0001a16192c2c3',
    'a map of 32 bits': 'df00000001a16180',
    'arrays in each other': `${'91'.repeat(16)}01`,
    'an extension': 'd60105000000',
    'an extension of any length': 'c7030100aabb',
    'a text': 'a3616263',
  }
  for (const [what, value] of Object.entries(values)) t.match(unpacked(record(value)), { path: [aa] }, what)
  const not = {
    'too deep': `${'91'.repeat(17)}01`,
    'endless depth': `${'91'.repeat(100_000)}01`,
    'more values than there are': 'dd7fffffff01',
    'a byte that begins nothing': 'c1',
  }
  for (const [what, value] of Object.entries(not)) t.equal(unpacked(record(value)), undefined, what)
})
