/** One item that the disk does not give as it was accepted: all others are posted, and wrong bytes never are. */
import { closeSync, openSync, renameSync, truncateSync, writeSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Id } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { LogPlace } from '../../../src/store/segments/log-file.js'
import { checkOf } from '../../../src/upload/bundling/item-check.js'
import type { AcceptedItem } from '../../../src/upload/records/uploads.js'
import { type Rig, rigOf } from './bundler-rig.js'

type Harm = (rig: Rig, place: LogPlace) => void

const harms: Readonly<Record<string, Harm>> = {
  'a byte that has changed': ({ log }, { offset, ...place }) => {
    const file = openSync(log.path({ offset, ...place }), 'r+')
    writeSync(file, Buffer.from('X'), 0, 1, offset + 2)
    closeSync(file)
  },
  'a file that is cut': ({ log }, place) => truncateSync(log.path(place), place.offset + 3),
}

const turns = async (rig: Rig, count: number): Promise<void> => {
  for (let at = 0; at < count; at += 1) await rig.turn(5000)
}

function placeOf({ uploads }: Rig, id: Id): LogPlace {
  return uploads.find(id)?.place ?? { file: -1, offset: 0, sizeBytes: 0 }
}

for (const [what, harm] of Object.entries(harms)) {
  t.test(`${what}, before it is packed`, async (t) => {
    const rig = await rigOf(t)
    const { uploads, accept } = rig
    const good = Array.from({ length: 4 }, (_, at) => accept(`item ${at}`))
    const bad = accept('the item whose bytes change')
    harm(rig, placeOf(rig, bad))
    await turns(rig, 3)
    for (const id of good) t.ok(uploads.find(id)?.bundle, 'it is packed')
    t.match(uploads.find(bad), { bundle: undefined, reason: undefined })
    t.match(uploads.unreadable.some(5), [{ id: bad, reason: /bytes/ }])
    const later = accept('an item that comes later')
    await turns(rig, 3)
    t.ok(uploads.find(later)?.bundle, 'it is packed')
  })

  t.test(`${what}, and the object store has it`, async (t) => {
    const name = 'the item whose bytes change'
    const box: { rig?: Rig } = {}
    const fromStore = async (): Promise<unknown> => box.rig?.log.append([Buffer.from(name)], Buffer.alloc(32))
    const rig = await rigOf(t, undefined, 100n, { fromStore } as never)
    box.rig = rig
    const bad = rig.accept(name)
    const before = placeOf(rig, bad)
    harm(rig, before)
    await turns(rig, 4)
    t.ok(rig.uploads.find(bad)?.bundle, 'it is packed')
    t.not(placeOf(rig, bad).offset, before.offset)
    t.equal(rig.uploads.unreadable.count, 0)
  })
}

t.test('bytes that change while a bundle is being sent', async (t) => {
  const sent: string[] = []
  let isTaken = false
  const chunk = async (json: string): Promise<object> => {
    sent.push((JSON.parse(json) as { chunk: string }).chunk)
    return { enough: isTaken, results: [] }
  }
  const rig = await rigOf(t, undefined, 100n, { broadcast: { chunk } } as never)
  const [good, bad] = [rig.accept('a good item'), rig.accept('the item whose bytes change')]
  await turns(rig, 2)
  t.equal(new Set(sent).size, 1)
  harms['a byte that has changed']?.(rig, placeOf(rig, bad))
  for (let at = 0; at < 12; at += 1) {
    rig.clock.now = (): number => Date.now() + at * 60_000
    await rig.turn(60_000)
  }
  t.ok(new Set(sent).size <= 2)
  t.notOk(
    sent.some((text) => Buffer.from(text, 'base64url').includes('thX')),
    'wrong bytes are never sent',
  )
  isTaken = true
  for (let at = 12; at < 16; at += 1) {
    rig.clock.now = (): number => Date.now() + at * 60_000
    await rig.turn(60_000)
  }
  t.equal(rig.bundles.find(rig.uploads.find(good)?.bundle ?? bad)?.state, 'seeded')
  t.equal(rig.uploads.find(bad)?.bundle, undefined)
})

t.test(
  'a posted bundle is paid for: a disk that is away for some minutes is waited for, and for an hour at most',
  async (t) => {
    let isTaken = false
    let posts = 0
    const post = (): object => {
      posts += 1
      return {}
    }
    const chunk = async (): Promise<object> => ({ enough: isTaken, results: [] })
    const rig = await rigOf(t, post, 100n, { broadcast: { chunk } } as never)
    const id = rig.accept('an item')
    let nowMs = Date.now()
    rig.clock.now = (): number => nowMs
    const pass = async (times: number): Promise<void> => {
      for (let at = 0; at < times; at += 1) {
        nowMs += 400_000
        await rig.turn(400_000)
      }
    }
    await pass(8)
    const first = rig.uploads.find(id)?.bundle as Id
    const path = rig.log.path(placeOf(rig, id))
    renameSync(path, `${path}.away`)
    await pass(4)
    t.match(rig.bundles.find(first), { state: 'posted', reason: /1 of its items cannot be read/ })
    renameSync(`${path}.away`, path)
    isTaken = true
    await pass(3)
    t.equal(rig.bundles.find(first)?.state, 'seeded')
    t.equal(posts, 1)
    isTaken = false
    const next = rig.accept('another item')
    await pass(4)
    const second = rig.uploads.find(next)?.bundle as Id
    renameSync(path, `${path}.away`)
    await pass(14)
    t.equal(rig.bundles.find(second)?.state, 'dropped')
    t.equal(rig.uploads.find(next)?.bundle, undefined)
  },
)

t.test('a disk that is well again', async (t: Test) => {
  const rig = await rigOf(t)
  const bad = rig.accept('the item whose bytes change')
  const place = placeOf(rig, bad)
  harms['a byte that has changed']?.(rig, place)
  await turns(rig, 2)
  t.equal(rig.uploads.unreadable.count, 1)
  const file = openSync(rig.log.path(place), 'r+')
  writeSync(file, Buffer.from('the item'), 0, 8, place.offset)
  closeSync(file)
  rig.clock.now = (): number => Date.now() + 3_600_000
  await turns(rig, 2)
  t.ok(rig.uploads.find(bad)?.bundle)
  t.equal(rig.uploads.unreadable.count, 0)
})

t.test('an item of an older release is checked by its signature', async (t) => {
  const bytes = Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 3)), {}, Buffer.from('its payload')))
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('no item')
  const item = { id: header.id, headerSize: header.headerSize } as AcceptedItem
  const isRight = (given: Uint8Array): boolean => {
    const check = checkOf(item)
    for (let at = 0; at < given.length; at += 50) check.update(given.subarray(at, at + 50))
    return check.isRight()
  }
  t.ok(isRight(bytes))
  for (let at = 0; at < bytes.length; at += 7) {
    const wrong = Buffer.from(bytes)
    wrong[at] = (wrong[at] ?? 0) ^ 1
    t.notOk(isRight(wrong), `byte ${at}`)
  }
})
