import { createHash } from 'node:crypto'
import t from 'tap'
import { stampOf } from '../../src/store/file-stamp.js'
import { SoundFiles, soundBytes } from '../../src/store/sound-files.js'

const digestOf = (at: number): Uint8Array => createHash('sha256').update(String(at)).digest()

t.test('exactly the checked file is found', async (t) => {
  const memory = new SharedArrayBuffer(soundBytes(2 ** 12))
  const files = new SoundFiles(memory)
  const other = new SoundFiles(memory)
  const stamp = stampOf(2n ** 40n + 7n, 1_700_000_000_123_456_789n)
  const digest = digestOf(1)
  t.notOk(files.has(digest, 5, stamp))
  files.add(digest, 5, stamp)
  t.ok(other.has(digest, 5, stamp), 'on every thread')
  t.notOk(files.has(digest, 6, stamp))
  t.notOk(files.has(digestOf(2), 5, stamp))
  t.notOk(files.has(digest, 5, stampOf(7n, 1_700_000_000_123_456_789n)))
  t.notOk(files.has(digest, 5, stampOf(2n ** 40n + 7n, 1_700_000_000_123_456_788n)))
  const next = stampOf(8n, 9n)
  other.add(digest, 5, next)
  t.ok(files.has(digest, 5, next))
  t.notOk(files.has(digest, 5, stamp), 'the file before is forgotten')
})

t.test('more files than slots replace others, and never make an unchecked file sound', async (t) => {
  const files = new SoundFiles(new SharedArrayBuffer(soundBytes(64)))
  const stamp = (at: number) => stampOf(BigInt(at + 1), BigInt(at) * 1_000_003n)
  for (let at = 0; at < 5000; at += 1) {
    files.add(digestOf(at), at, stamp(at))
    t.ok(files.has(digestOf(at), at, stamp(at)))
  }
  let found = 0
  for (let at = 0; at < 5000; at += 1) {
    if (files.has(digestOf(at), at, stamp(at))) found += 1
    if (files.has(digestOf(at), at, stamp(at + 1))) t.fail('another file')
  }
  t.equal(found, 64)
  t.throws(() => new SoundFiles(new SharedArrayBuffer(soundBytes(24))), RangeError)
})
