import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { mappedBy, mappedNow } from '../../native/mapped/mapped.js'
import { checkCdb } from '../../src/store/cdb-check.js'
import { CdbSearch, closeCdb, openCdb } from '../../src/store/cdb-reader.js'
import { CdbWriter } from '../../src/store/cdb-writer.js'
import { eventually } from '../eventually.js'
import { mutated } from '../fuzz/mutate.js'
import { fc } from '../property.js'

type Records = readonly (readonly [Uint8Array, Uint8Array])[]

let files = 0

function written(folder: string, records: Records): string {
  files += 1
  const path = join(folder, `${files}.cdb`)
  const writer = new CdbWriter(path)
  for (const [key, value] of records) {
    writer.add(Buffer.concat([key, value]), 0, key.length, value.length)
  }
  writer.finish()
  return path
}

function found(path: string, keys: readonly Uint8Array[], mapped = false): (Buffer | string)[] {
  const file = openCdb(path, mapped)
  if (typeof file === 'string') return keys.map(() => file)
  const search = new CdbSearch()
  const answers = keys.map((key) => {
    const outcome = search.find(file, key)
    return outcome === 'found' ? Buffer.from(search.bytes.subarray(search.start, search.end)) : outcome
  })
  closeCdb(file)
  return answers
}

const oneKey = Buffer.from(Array.from({ length: 32 }, (_, at) => at))
const oneValue = Buffer.concat([Buffer.from('81a172c420', 'hex'), Buffer.alloc(32, 0xaa)])
const id = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes))
const value = fc.uint8Array({ maxLength: 90 }).map((bytes) => Buffer.from(bytes))
const someRecords = fc.uniqueArray(fc.tuple(id, value), {
  maxLength: 400,
  selector: ([key]) => key.toString('hex'),
})

t.test('a file is byte for byte what others write', async (t) => {
  const path = written(t.testdir(), [[oneKey, oneValue]])
  const bytes = readFileSync(path)
  t.equal(bytes.length, 4213)
  t.equal(
    createHash('sha256').update(bytes).digest('hex'),
    'f4c2a111a541be26e123c305c067232c12925b0c8112d8578ae1419ac32bcc5a',
  )
})

t.test('every record that was written is found, and no other', async (t) => {
  const folder = t.testdir()
  await fc.assert(
    fc.asyncProperty(someRecords, fc.array(id, { maxLength: 20 }), async (records, others) => {
      const path = written(folder, records)
      const keys = records.map(([key]) => key)
      t.strictSame(
        found(path, keys),
        records.map(([, value]) => value),
      )
      const known = new Set(keys.map((key) => key.toString('hex')))
      for (const key of others.filter((key) => !known.has(key.toString('hex')))) {
        t.strictSame(found(path, [key]), ['absent'])
      }
      const checked = await checkCdb(path, { keyBytes: 32 })
      t.match(checked, { records: records.length })
    }),
    { numRuns: 60 },
  )
})

t.test('values longer than a window, and records beyond a block of memory', async (t) => {
  const records: Records = Array.from({ length: 3000 }, (_, at) => [
    createHash('sha256').update(String(at)).digest(),
    Buffer.alloc(at % 7 === 0 ? 4000 : at % 100, at & 255),
  ])
  const path = written(t.testdir(), records)
  t.strictSame(
    found(
      path,
      records.map(([key]) => key),
    ),
    records.map(([, value]) => value),
  )
  t.match(await checkCdb(path, { keyBytes: 32 }), { records: 3000 })
})

/** Memory goes when the loop has turned after the last view. */
async function untilNothingMapped(): Promise<void> {
  await eventually('no file is mapped any more', () => mappedNow().count === 0)
}

const addonOnly = { skip: mappedBy === 'fallback' ? 'needs the addon' : false }

t.test('reading in place gives the same as reading, in sound and in damaged files', addonOnly, async (t) => {
  const folder = t.testdir()
  const longer = fc.uint8Array({ maxLength: 9000 }).map((bytes) => Buffer.from(bytes))
  const records = fc.uniqueArray(fc.tuple(id, fc.oneof(value, value, longer)), {
    minLength: 1,
    maxLength: 200,
    selector: ([key]) => key.toString('hex'),
  })
  // Each key twice: the second search finds its pages seen.
  const alike = (path: string, keys: readonly Buffer[]): void => {
    t.strictSame(found(path, [...keys, ...keys], true), found(path, [...keys, ...keys]))
  }
  fc.assert(
    fc.property(records, id, (records, other) => {
      alike(written(folder, records), [...records.map(([key]) => key), other])
    }),
    { numRuns: 60 },
  )
  const some: Records = Array.from({ length: 40 }, (_, at) => [
    createHash('sha256').update(`place ${at}`).digest(),
    Buffer.alloc(at * 9, at),
  ])
  const sound = readFileSync(written(folder, some))
  const path = join(folder, 'broken.cdb')
  fc.assert(
    fc.property(mutated([sound]), (bytes) => {
      writeFileSync(path, bytes)
      alike(
        path,
        some.map(([key]) => Buffer.from(key)),
      )
    }),
    { numRuns: 150 },
  )
  await untilNothingMapped()
  t.strictSame(mappedNow(), { count: 0, bytes: 0 }, 'nothing stays mapped')
})

t.test('of records with one key the first is found', async (t) => {
  const path = written(t.testdir(), [
    [oneKey, Buffer.from('first')],
    [oneKey, Buffer.from('second')],
  ])
  t.strictSame(found(path, [oneKey]), [Buffer.from('first')])
})

const hasPython = spawnSync('python3', ['--version']).error === undefined
const other = 'a program that knows only the text of the format finds the same'
t.test(other, { skip: hasPython ? false : 'needs python3' }, async (t) => {
  const records: Records = Array.from({ length: 500 }, (_, at) => [
    createHash('sha256').update(`python ${at}`).digest(),
    Buffer.from(`value ${at}`),
  ])
  const path = written(t.testdir(), records.slice(0, 400))
  const script = fileURLToPath(new URL('../../../test/store/cdb.py', import.meta.url))
  const input = records.map(([key]) => Buffer.from(key).toString('hex')).join('\n')
  const { stdout } = spawnSync('python3', [script, path], { input, encoding: 'utf8' })
  t.strictSame(
    stdout.trim().split('\n'),
    records.map(([, value], at) => (at < 400 ? Buffer.from(value).toString('hex') : '-')),
  )
})

const honest: Records = Array.from({ length: 60 }, (_, at) => [
  createHash('sha256').update(`honest ${at}`).digest(),
  Buffer.from(`value ${at}`),
])

t.test(
  'one flipped bit, anywhere: refused, or every answer is as before but for the bytes of values',
  async (t) => {
    const folder = t.testdir()
    const bytes = readFileSync(written(folder, honest))
    const keys = honest.map(([key]) => key)
    const digest = createHash('sha256').update(bytes).digest('hex')
    const path = join(folder, 'flipped.cdb')
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (at, bit) => {
        const flipped = Buffer.from(bytes)
        flipped[at] = (flipped[at] as number) ^ (1 << bit)
        writeFileSync(path, flipped)
        const answers = found(path, keys)
        const checked = await checkCdb(path, { keyBytes: 32 })
        if (typeof checked === 'string') return
        t.not(checked.sha256, digest, 'the digest tells')
        const wrong = answers.filter((answer, index) => {
          const right = honest[index]?.[1] ?? Buffer.alloc(0)
          return typeof answer === 'string' || answer.length !== right.length
        })
        t.equal(wrong.length, 0, `the structure says all is well with byte ${at}`)
      }),
      { numRuns: 1500 },
    )
  },
)

t.test('whatever a file holds, nothing is thrown and every search ends', async (t) => {
  const folder = t.testdir()
  const bytes = readFileSync(written(folder, honest))
  const path = join(folder, 'any.cdb')
  const keys = honest.slice(0, 12).map(([key]) => key)
  await fc.assert(
    fc.asyncProperty(mutated([bytes]), async (input) => {
      writeFileSync(path, input)
      found(path, keys)
      await checkCdb(path, { keyBytes: 32 })
    }),
    { numRuns: 600 },
  )
  t.pass()
})

t.test('wrong structure with a right checksum is detected', async (t) => {
  const folder = t.testdir()
  const bytes = readFileSync(written(folder, honest))
  const path = join(folder, 'lie.cdb')
  const lie = async (act: (copy: Buffer) => Buffer | undefined): Promise<unknown> => {
    const copy = Buffer.from(bytes)
    writeFileSync(path, act(copy) ?? copy)
    return checkCdb(path, { keyBytes: 32 })
  }
  const table = Array.from({ length: 256 }, (_, at) => at).filter((at) => bytes.readUInt32LE(at * 16 + 8) > 0)
  const [one = 0, other = 0] = table
  const word = (at: number): bigint => bytes.readBigUInt64LE(at)
  t.type(
    await lie((copy) => void copy.writeBigUInt64LE(1n << 60n, one * 16 + 8)),
    'string',
    'a huge slot count',
  )
  t.type(
    await lie((copy) => void copy.writeBigUInt64LE(word(one * 16), other * 16)),
    'string',
    'tables that overlap',
  )
  t.type(await lie((copy) => void copy.writeBigUInt64LE(8n, one * 16)), 'string', 'a table inside the header')
  t.type(await lie((copy) => Buffer.concat([copy, Buffer.alloc(16)])), 'string', 'more behind the tables')
  t.type(await lie((copy) => copy.subarray(0, copy.length - 16)), 'string', 'a cut table')
  t.type(await lie((copy) => copy.subarray(0, 100)), 'string', 'half a header')
  t.type(await lie(() => Buffer.alloc(0)), 'string', 'nothing')
  const single = readFileSync(written(folder, [[oneKey, oneValue]]))
  // Its table, the last one in the file, has two slots, of which one is full.
  const [first, second] = [single.subarray(-32, -16), single.subarray(-16)]
  if (first.every((byte) => byte === 0)) second.copy(first)
  else first.copy(second)
  t.match(await lie(() => single), /no slot of a table is empty/)
  t.match(await checkCdb(written(folder, honest), { keyBytes: 31 }), /not of 31 bytes/)
  t.match(await checkCdb(written(folder, honest), { keyBytes: 32, firstByte: 1 }), /in the wrong file/)
})
