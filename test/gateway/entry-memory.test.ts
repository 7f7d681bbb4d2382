import { generateKeyPairSync, randomBytes } from 'node:crypto'
import t from 'tap'
import { ed25519SignerOf } from '../../native/ed25519/ed25519.js'
import { silentLog } from '../../src/actor/log.js'
import { createSigner } from '../../src/attest/answer-signature.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import type { Attributes } from '../../src/catalog/attributes.js'
import { attributesIn, encodeAttributes } from '../../src/catalog/catalog-record.js'
import { Entry } from '../../src/gateway/entry.js'
import { gatewayDefaults } from '../../src/gateway/gateway-parts.js'
import { createHeadWriter } from '../../src/gateway/head-writer.js'
import { memoryBytes } from '../memory-bytes.js'
import { someId } from '../source/rig.js'

const whole = { variant: 'whole', cached: true, sound: true, fallback: false } as const
const count = 4000

const plain = (): Attributes => ({
  id: someId(),
  size: 6000,
  contentType: 'application/json',
  height: 1_000_000,
  digest: randomBytes(32),
  verified: true,
  trusted: true,
})

const item = (): Attributes => {
  const root = someId()
  const sizes = { rootItemOffset: 1e6, parentItemOffset: 1e6, itemSize: 7000, headerSize: 1200 }
  return {
    ...plain(),
    place: { rootId: root, parentId: root, path: [root], ...sizes },
    header: {
      signatureType: 1,
      signature: randomBytes(512),
      owner: randomBytes(512),
      ownerAddress: someId(),
      target: new Uint8Array(0),
      anchor: randomBytes(32),
      tags: Array.from({ length: 9 }, (_, at) => ({
        name: Buffer.from(`Tag-Name-${at}`),
        value: Buffer.from(`a value ${someId()}`),
      })),
    },
  }
}

const { privateKey } = generateKeyPairSync('ed25519')
const key = {
  privateKey,
  sign: ed25519SignerOf(privateKey),
  publicKey: new Uint8Array(32),
  solanaAddress: '',
  keyId: `ed25519:${randomBytes(32).toString('base64url')}`,
}

for (const reuseSeconds of [60, 0]) {
  for (const [name, make] of Object.entries({ plain, item })) {
    t.test(`the memory of entries is what is counted: ${name}, signed for ${reuseSeconds} s`, async (t) => {
      const writer = createHeadWriter({
        vocabulary: vocabularies.neutral,
        log: silentLog,
        options: gatewayDefaults,
        signer: createSigner(key, { bindRequest: true, reuseSeconds }),
      })
      const records = Array.from({ length: count }, () => make()).map(
        (one) => [one.id, Buffer.from(encodeAttributes(one))] as const,
      )
      const before = memoryBytes()
      let counted = 0
      const entries = records.map(([id, record]) => {
        const attributes = attributesIn(id, record)
        if (attributes === undefined) throw new Error('a record of its own cannot be read')
        const entry = new Entry(attributes, 1, true, (_, bytes) => {
          counted += bytes
        })
        counted += entry.bytes
        entry.heads.headFor(whole, 'GET', `/raw/${id}`, 1_700_000_000, writer)
        return entry
      })
      const taken = memoryBytes() - before
      t.comment(
        `${entries.length} of ${records.length}: ${taken / count} bytes each, ${counted / count} counted`,
      )
      t.ok(taken > counted * 0.7, 'no more is counted than is taken')
      t.ok(taken < counted * 1.3, 'no less is counted than is taken')
    })
  }
}
