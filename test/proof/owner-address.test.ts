import { equal } from 'node:assert/strict'
import t from 'tap'
import { decodeBase58, encodeBase58 } from '../../src/format/base58.js'
import { encodeBech32 } from '../../src/format/bech32.js'
import { checksumAddress } from '../../src/proof/ethereum.js'
import {
  aliasOf,
  canonicalAddress,
  kyveAddress,
  nativeAddress,
  normalizedAddress,
} from '../../src/proof/owner-address.js'
import { fixtureJson, fromBase64url, toHex } from '../fixture-file.js'
import { fc } from '../property.js'

interface Vector {
  readonly owner_b64url: string
  readonly owner_sha256: string
}
const vectors = fixtureJson<Record<string, Vector>>('vectors.json')
const checksum = (text: string) => checksumAddress(Buffer.from(text.slice(2), 'hex'))
const ownerOf = (name: string) => fromBase64url(vectors[name]?.owner_b64url ?? '')

t.test('the normalized address is the hash of the owner, whatever its type', async (t) => {
  for (const name of ['eth3_tags', 'ed25519_type2', 'solana_type4_hex', 'typedEth7']) {
    t.equal(normalizedAddress(ownerOf(name)), vectors[name]?.owner_sha256, name)
  }
})

t.test("the native address is the one that the key's own network shows", async (t) => {
  // Well-known addresses of the keys whose secret is 32 bytes of 1.
  const ethereum = '0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1'
  t.equal(nativeAddress(3, ownerOf('eth3_tags')), ethereum)
  t.equal(nativeAddress(7, ownerOf('typedEth7')), ethereum)
  t.equal(nativeAddress(4, ownerOf('solana_type4_hex')), encodeBase58(ownerOf('solana_type4_hex')))
  t.equal(nativeAddress(2, ownerOf('ed25519_type2')), encodeBase58(ownerOf('ed25519_type2')))
  const rsa = Buffer.alloc(512, 1)
  t.equal(nativeAddress(1, rsa), normalizedAddress(rsa))
  t.equal(kyveAddress(ownerOf('eth3_tags')), 'kyve10xcqpzrky6eff2g52qdye53xkk9jxkvrkwh2t8')
})

t.test('base58 is written and read as its draft shows, and comes back', async (t) => {
  const known = [
    [Buffer.from('Hello World!'), '2NEpo7TZRRrLZSi2U'],
    [
      Buffer.from('The quick brown fox jumps over the lazy dog.'),
      'USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z',
    ],
    [Buffer.from('0000287fb4cd', 'hex'), '11233QC4'],
  ] as const
  for (const [bytes, text] of known) t.equal(encodeBase58(bytes), text)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      equal(toHex(decodeBase58(encodeBase58(bytes)) ?? Buffer.from('none')), toHex(bytes))
    }),
  )
  t.equal(decodeBase58('0'), undefined)
  t.equal(decodeBase58('1'.repeat(129)), undefined)
})

t.test('bech32 is written as BIP 173 shows', async (t) => {
  t.equal(encodeBech32('a', new Uint8Array(0)), 'a12uel5l')
  const bytes = Buffer.from('00443214c74254b635cf84653a56d7c675be77df', 'hex')
  t.equal(encodeBech32('abcdef', bytes), 'abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw')
})

t.test('an owner has few addresses for credits, and one by which it is counted', async (t) => {
  const text = Buffer.from(ownerOf('typedEth7')).toString('latin1')
  const spelled = fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }).map((upper) => {
    const hex = text.slice(2).toLowerCase()
    return Buffer.from(`0x${[...hex].map((one, at) => (upper[at] ? one.toUpperCase() : one)).join('')}`)
  })
  const byType = new Map<number, Set<string>>()
  const seen = (type: number, owner: Uint8Array): void => {
    const alias = aliasOf(type, owner)
    const known = byType.get(type) ?? new Set()
    byType.set(type, alias === undefined ? known : known.add(alias))
  }
  fc.assert(
    fc.property(spelled, (owner) => {
      seen(7, owner)
      equal(canonicalAddress(7, owner), canonicalAddress(7, ownerOf('typedEth7')))
    }),
  )
  // EIP-55 and small letters, which programs write.
  const [canonical, small] = [checksum(text), text.toLowerCase()].map((one) => Buffer.from(one))
  const written = [canonical, small].map((one) => normalizedAddress(one ?? Buffer.alloc(0)))
  for (const owner of [canonical, small]) seen(7, owner ?? Buffer.alloc(0))
  t.strictSame([...(byType.get(7) ?? [])].sort(), [...written].sort())

  const key = ownerOf('eth3_tags')
  for (let first = 0; first < 256; first += 1) seen(3, Buffer.concat([Uint8Array.of(first), key.subarray(1)]))
  t.strictSame([...(byType.get(3) ?? [])], [normalizedAddress(key)])
  for (const junk of [
    Buffer.alloc(42),
    Buffer.from(`0x${'g'.repeat(40)}`),
    Buffer.from('0X'.padEnd(42, 'a')),
  ])
    t.equal(aliasOf(7, junk), undefined)
  for (const name of ['ed25519_type2', 'solana_type4_hex'])
    t.equal(aliasOf(2, ownerOf(name)), normalizedAddress(ownerOf(name)))
})
