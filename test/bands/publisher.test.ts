import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../config/read.js'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { indexOffer, type Offer, readStoredOffer } from '../../src/bands/band-offer.js'
import type { BandStore } from '../../src/bands/band-store.js'
import { bandBlobPath } from '../../src/bands/blob-path.js'
import { bandsThread } from '../../src/threads/index/bands-options.js'
import { house, shelveBand } from './root-band-rig.js'

/** A clock that is turned by hand. */
function turned(): Clock & { at: number } {
  const clock = { ...systemClock, at: 1_900_000_000_000, now: () => clock.at, monotonic: () => clock.at }
  return clock
}

function offerOf(bandStore: BandStore): Offer {
  const stored = readStoredOffer(readFileSync(join(bandStore.root, 'offer.json'), 'utf8'))
  const offer = stored === undefined ? undefined : indexOffer(stored)
  if (offer === undefined) throw new Error('no offer')
  return offer
}

const bandsOf = (offer: Offer): string[] =>
  offer.document.indexes.flatMap(({ bands }) => bands.map(({ id }) => id))

t.test('nothing is published where there was never a band', async (t) => {
  const { publisher, bandStore } = await house()
  t.equal(await publisher.publish(), 0)
  t.notOk(existsSync(join(bandStore.root, 'offer.json')))
})

t.test(
  'the document changes when bands do, or half of its time is over, and knows the one before',
  async (t) => {
    const clock = turned()
    const { publisher, bandStore, open } = await house({}, clock)
    await shelveBand(bandStore, 'one', [1, 2])
    const first = await publisher.publish()
    const before = offerOf(bandStore)
    t.equal(before.document.previousManifestSha256, null)
    clock.at += 1000
    t.equal(await publisher.publish(), first, 'nothing new')
    t.equal(await open().publish(), first, 'nor for another process')
    await shelveBand(bandStore, 'two', [3])
    const second = await publisher.publish()
    t.ok(second > first)
    const after = offerOf(bandStore)
    t.equal(after.document.previousManifestSha256, before.sha256)
    t.strictSame(bandsOf(after), ['one', 'two'])
    clock.at += 43_201_000
    t.ok((await publisher.publish()) > second, 'renewed at half of its time')
    t.equal(offerOf(bandStore).expiresMs, clock.at + 86_400_000)
  },
)

t.test('a replaced band is not offered any more, and is removed after the grace time', async (t) => {
  const clock = turned()
  const { publisher, bandStore } = await house({ graceMs: 60_000 }, clock)
  const folder = await shelveBand(bandStore, 'old', [1, 2])
  await publisher.publish()
  const [file] = offerOf(bandStore).document.indexes[0]?.bands[0]?.files ?? []
  await shelveBand(bandStore, 'new', [4], { heightRange: [0, null], supersedes: ['old'] })
  await publisher.publish()
  t.strictSame(bandsOf(offerOf(bandStore)), ['new'])
  t.ok(existsSync(folder))
  t.ok(
    existsSync(bandBlobPath(bandStore.root, file?.sha256 ?? '')),
    'one round later nobody asks for its files',
  )
  clock.at += 61_000
  await publisher.publish()
  t.notOk(existsSync(folder))
  t.notOk(existsSync(bandBlobPath(bandStore.root, file?.sha256 ?? '')))
  t.strictSame(readdirSync(join(bandStore.root, 'tmp')), [])
})

t.test('foreign files among the bands, and a lost state, do not stop the publisher', async (t) => {
  const clock = turned()
  const { publisher, bandStore, open } = await house({}, clock)
  await shelveBand(bandStore, 'good', [1])
  const bad = await shelveBand(bandStore, 'bad', [2])
  writeFileSync(join(bad, 'more'), 'x')
  const first = await publisher.publish()
  t.strictSame(bandsOf(offerOf(bandStore)), ['good'])
  for (const text of ['{', '[]', '{"document":"x","files":{}}']) {
    writeFileSync(join(bandStore.root, 'offer.json'), text)
    clock.at += 1000
    t.ok((await open().publish()) > first, 'no rollback for those who follow')
  }
  for (const name of readdirSync(join(bandStore.root, 'measured', 'root-tx-index'))) {
    writeFileSync(join(bandStore.root, 'measured', 'root-tx-index', name), 'rubbish')
  }
  rmSync(join(bandStore.root, 'blobs'), { recursive: true })
  await open().publish()
  const offer = offerOf(bandStore)
  for (const { sha256, size } of offer.byDigest.values()) {
    t.equal(readFileSync(bandBlobPath(bandStore.root, sha256)).length, size)
  }
})

t.test('a document that was signed before the clock was set back is signed anew', async (t) => {
  const clock = turned()
  const { publisher, bandStore } = await house({}, clock)
  await shelveBand(bandStore, 'one', [1, 2])
  const first = await publisher.publish()
  clock.at -= 400 * 86_400_000
  t.ok((await publisher.publish()) > first)
  t.equal(offerOf(bandStore).expiresMs, clock.at + 86_400_000)
})

t.test('the tracker that magnets name: by the host that is set', async (t) => {
  const ofSettings = (settings: Readonly<Record<string, string>>): string | undefined => {
    const config = readConfig({ INDEX_PUBLISH: 'true', INDEX_SEED: 'true', ...settings })
    if (Array.isArray(config)) throw new Error(config.join('; '))
    return bandsThread(config, new SharedArrayBuffer(8))?.ownTracker
  }
  const host = { ARNS_ROOT_HOST: 'Gateway.example,other.example' }
  t.equal(ofSettings({}), undefined)
  t.equal(ofSettings({ ...host, PORT: '8080' }), 'http://gateway.example:8080/gateway/indexes/announce')
  t.equal(ofSettings({ ...host, PORT: '0' }), undefined, 'a port that is not known yet')
  const mainnet = { ...host, NETWORK: 'mainnet', PORT: '8080' }
  t.equal(ofSettings(mainnet), 'https://gateway.example/gateway/indexes/announce')
})
