import { readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Clock } from '../../src/actor/clock.js'
import type { Content } from '../../src/store/content.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { eventually } from '../eventually.js'
import { openFiles } from '../open-files.js'
import { scratch } from '../scratch.js'

const folder = scratch('mapped')

/** A clock whose only timer fires by hand. */
function handClock(): { clock: Clock; tick(times: number): void } {
  let act: (() => void) | undefined
  const cancel = { cancel: () => undefined }
  return {
    clock: {
      now: () => 0,
      monotonic: () => 0,
      after: () => cancel,
      every: (_, each) => {
        act = each
        return cancel
      },
    },
    tick: (times) => {
      for (let at = 0; at < times; at += 1) act?.()
    },
  }
}

const options = { mappedMaxBytes: 2 ** 30, filesMax: 100, believeMs: 1000 }

async function readAll(content: Content, start: number, end: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let at = start; at < end; ) {
    const view = content.read(at, end)
    if (view === undefined) {
      if (!(await content.ready(at, end))) throw new Error('the disk failed')
      continue
    }
    pieces.push(Buffer.from(view))
    at += view.length
  }
  return Buffer.concat(pieces)
}

function made(name: string, bytes: Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

const random = (length: number): Buffer => {
  const bytes = Buffer.alloc(length)
  let state = length
  for (let at = 0; at < length; at += 1) {
    state = (state * 1103515245 + 12345) & 0x7fffffff
    bytes[at] = state >> 16
  }
  return bytes
}

t.test('windows of a file give its bytes, also across the borders of what is mapped at once', async (t) => {
  const bytes = random(5 * 1024 * 1024 + 17)
  const path = made('a', bytes)
  const files = new MappedFiles(options, handClock().clock)
  const content = files.open(path)
  t.ok(content)
  if (content === undefined) return
  t.equal(content.sizeBytes, bytes.length)
  const two = 2 * 1024 * 1024
  for (const [start, end] of [
    [0, 1],
    [0, bytes.length],
    [two - 1, two + 1],
    [two, two + 4096],
    [bytes.length - 1, bytes.length],
    [12345, 4_000_000],
  ] as const) {
    t.ok((await readAll(content, start, end)).equals(bytes.subarray(start, end)), `[${start}, ${end})`)
  }
  t.throws(() => content.read(0, bytes.length + 1), RangeError)
  t.throws(() => content.read(5, 5), RangeError)
  content.close()
  files.close()
})

t.test('a file that is not there is undefined', (t) => {
  const files = new MappedFiles(options, handClock().clock)
  t.equal(files.open(join(folder, 'none')), undefined)
  files.close()
  t.end()
})

t.test('a replaced file is seen after the check interval, and readers of the old one go on', async (t) => {
  const hand = handClock()
  const files = new MappedFiles(options, hand.clock)
  const path = made('b', Buffer.from('old bytes'))
  const old = files.open(path)
  renameSync(made('b-new', Buffer.from('new')), path)
  const believed = files.open(path)
  t.equal(believed?.sizeBytes, 9, 'believed to be the old one for a while')
  believed?.close()
  hand.tick(4)
  const fresh = files.open(path)
  t.equal(fresh?.sizeBytes, 3)
  if (old === undefined || fresh === undefined) return
  t.equal((await readAll(old, 0, 9)).toString(), 'old bytes')
  t.equal((await readAll(fresh, 0, 3)).toString(), 'new')
  t.not(old.stamp.inodeLow, fresh.stamp.inodeLow)
  old.close()
  fresh.close()
  unlinkSync(path)
  hand.tick(4)
  t.equal(files.open(path), undefined)
  files.close()
})

t.test('idle files beyond the limits are closed, those being read are not', async (t) => {
  const files = new MappedFiles({ ...options, filesMax: 2 }, handClock().clock)
  const held = files.open(made('c0', Buffer.from('c0')))
  for (let at = 1; at < 10; at += 1) {
    const content = files.open(made(`c${at}`, Buffer.from(`c${at}`)))
    if (content === undefined) throw new Error('it was just written')
    t.equal((await readAll(content, 0, 2)).toString(), `c${at}`)
    content.close()
  }
  if (held !== undefined) t.equal((await readAll(held, 0, 2)).toString(), 'c0')
  held?.close()
  files.close()
})

/** Whether this process keeps the file from giving its room back to the disk. */
function isHeld(path: string): boolean {
  if (readFileSync('/proc/self/maps', 'utf8').includes(path)) return true
  return openFiles(path).length > 0
}

t.test('a removed file that nobody asks for again gives its room back', async (t) => {
  const { clock, tick } = handClock()
  const files = new MappedFiles(options, clock)
  const [removed, read, kept] = ['removed', 'read', 'kept'].map((name) => made(name, random(5000))) as [
    string,
    string,
    string,
  ]
  for (const path of [removed, kept]) files.open(path)?.close()
  const content = files.open(read)
  for (const path of [removed, read]) unlinkSync(path)
  t.ok([removed, read, kept].every(isHeld))
  tick(300)
  await eventually('the removed file is held no more', () => !isHeld(removed))
  t.ok(isHeld(kept), 'what is there is kept for the next reader')
  t.ok(content !== undefined && (await readAll(content, 0, 5000)).equals(random(5000)))
  content?.close()
  tick(300)
  await eventually('the file that was read is held no more', () => !isHeld(read))
  files.close()
})

t.test('contents that are open when the cache closes stay readable', async (t) => {
  const files = new MappedFiles(options, handClock().clock)
  const content = files.open(made('d', Buffer.from('still here')))
  files.close()
  if (content === undefined) throw new Error('it was just written')
  t.equal((await readAll(content, 0, 10)).toString(), 'still here')
  content.close()
})
