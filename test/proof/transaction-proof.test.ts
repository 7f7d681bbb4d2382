import { equal } from 'node:assert/strict'
import { createECDH, createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import Arweave from 'arweave'
import t from 'tap'
import { idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { parseTransaction, type Transaction, transactionJson } from '../../src/format/transaction.js'
import { dataTree } from '../../src/proof/data-root.js'
import { sha256 } from '../../src/proof/digest.js'
import { newRsaKey } from '../../src/proof/new-key.js'
import { signTransaction, signTransactionEcdsa } from '../../src/proof/sign.js'
import { isBoundById, ownerOf, signatureData, verifyTransaction } from '../../src/proof/transaction-proof.js'
import { fixtureJson, fixtureLines, fixtureNames, sound } from '../fixture-file.js'

const jwk = fixtureJson<JsonWebKey>('rsa-4096.jwk.json')
const library = Arweave.init({})

t.test('real transactions of both formats are what their ids say', async (t) => {
  const real = [
    ...fixtureLines('transactions.ndjson'),
    ...fixtureLines('genesis.ndjson'),
    ...fixtureNames('transactions')
      .filter((name) => name.endsWith('.json'))
      .map((name) => fixtureJson(`transactions/${name}`)),
  ]
  const formats = { 1: 0, 2: 0 }
  for (const json of real) {
    const tx = sound(parseTransaction(json))
    equal(verifyTransaction(tx), true, tx.id)
    formats[tx.format]++
  }
  t.equal(formats[1] + formats[2], 465)
  t.ok(formats[1] > 0 && formats[2] > 0)
})

const data = Buffer.alloc(300_000, 'x')
const unsigned = {
  format: 2 as const,
  lastTx: Buffer.alloc(48, 1),
  tags: [tagOf('Content-Type', 'text/plain'), tagOf('A', 'é')],
  target: Buffer.alloc(32, 2),
  quantity: 12_345_678_901_234_567_890n,
  data,
  dataSize: data.length,
  dataRoot: dataTree(data).root,
  reward: 1n,
  denomination: 0,
}
const signed = signTransaction(unsigned, jwk)

t.test('a transaction signed here is verified by an independent library', async (t) => {
  t.equal(verifyTransaction(signed), true)
  const theirs = library.transactions.fromRaw({ ...transactionJson(signed), data })
  t.equal(await library.transactions.verify(theirs), true)
})

t.test('a transaction that an independent library signs is verified here', async (t) => {
  const attributes = { last_tx: Buffer.alloc(48, 1).toString('base64url'), reward: '5', data }
  const theirs = await library.createTransaction(
    attributes,
    jwk as Parameters<typeof library.createTransaction>[1],
  )
  theirs.addTag('Content-Type', 'text/plain')
  await library.transactions.sign(theirs, jwk as Parameters<typeof library.transactions.sign>[1])
  const tx = sound(parseTransaction(theirs.toJSON()))
  t.equal(verifyTransaction(tx), true)
  t.equal(Buffer.compare(tx.data, data), 0)
})

t.test('each signed field counts', async (t) => {
  const changes: Partial<Transaction>[] = [
    { lastTx: Buffer.alloc(48, 9) },
    { owner: Buffer.concat([signed.owner.subarray(0, 511), Buffer.from([1])]) },
    { tags: signed.tags.slice(1) },
    { tags: [...signed.tags].reverse() },
    { target: new Uint8Array(0) },
    { quantity: 1n },
    { reward: 2n },
    { dataRoot: Buffer.alloc(32) },
    { dataSize: 1 },
    { format: 1 },
  ]
  for (const change of changes) {
    const answer = verifyTransaction({ ...signed, data: new Uint8Array(0), ...change })
    t.match(answer, { refused: 'forged' }, Object.keys(change).join())
  }
  t.equal(verifyTransaction({ ...signed, data: new Uint8Array(0) }), true)
})

t.test('an id, a signature or data that is another one is refused with the reason', async (t) => {
  const signature = Buffer.from(signed.signature)
  signature[9] = (signature[9] ?? 0) ^ 1
  t.match(verifyTransaction({ ...signed, signature }), { refused: 'forged', message: /id is not the hash/ })
  const id = idOfBytes(sha256(signature))
  t.match(verifyTransaction({ ...signed, signature, id }), { refused: 'forged', message: /not by the owner/ })
  const other = { ...signed, data: Buffer.alloc(300_000, 'y') }
  t.match(verifyTransaction(other), { refused: 'forged', message: /data root/ })
})

t.test('what is not supported is refused and said so', async (t) => {
  t.match(verifyTransaction({ ...signed, denomination: 1 }), { refused: 'forged', message: /owner/ })
  t.match(verifyTransaction({ ...signed, owner: new Uint8Array(0) }), { message: /no key/ })
  t.match(verifyTransaction({ ...signed, format: 1, data: new Uint8Array(0) }), {
    message: /without its data/,
  })
})

t.test('a transaction without an owner is by the secp256k1 key that made its signature', async (t) => {
  const secret = Buffer.alloc(32, 7)
  const pair = createECDH('secp256k1')
  pair.setPrivateKey(secret)
  const key = pair.getPublicKey(null, 'compressed')
  const tx = signTransactionEcdsa(unsigned, secret)
  t.equal(verifyTransaction(tx), true)
  t.same(Buffer.from(ownerOf(tx)), key)
  t.same(parseTransaction(transactionJson(tx)), tx, 'the wire carries no owner')
  const [x, y] = [pair.getPublicKey().subarray(1, 33), pair.getPublicKey().subarray(33)]
  const jwk = { kty: 'EC', crv: 'secp256k1', x: x.toString('base64url'), y: y.toString('base64url') }
  const theirs = createPublicKey({ key: jwk, format: 'jwk' })
  const [message, plain] = [signatureData(tx), tx.signature.subarray(0, 64)]
  t.ok(verify('sha256', message, { key: theirs, dsaEncoding: 'ieee-p1363' }, plain), 'OpenSSL agrees')

  const changed = ownerOf({ ...tx, reward: 2n })
  t.not(Buffer.compare(changed, key), 0, 'other fields are signed by another key, or by none')
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const high = order - BigInt(`0x${Buffer.from(tx.signature.subarray(32, 64)).toString('hex')}`)
  const s = Buffer.from(high.toString(16).padStart(64, '0'), 'hex')
  const recovery = Uint8Array.of((tx.signature[64] ?? 0) ^ 1)
  for (const signature of [
    Buffer.concat([tx.signature.subarray(0, 32), s, recovery]),
    Buffer.concat([plain, Uint8Array.of(4)]),
    plain,
    Buffer.alloc(65),
    Buffer.alloc(65, 0xff),
    Buffer.alloc(0),
  ]) {
    const bad = { ...tx, signature, id: idOfBytes(sha256(signature)) }
    t.match(verifyTransaction(bad), { refused: 'forged' })
    t.equal(ownerOf(bad).length, 0)
  }
  t.match(verifyTransaction({ ...tx, data: Buffer.from('x') }), { refused: 'forged' })
  t.match(verifyTransaction({ ...tx, format: 1 }), { refused: 'forged' })
})

t.test('redenominated amounts are signed with their denomination', async (t) => {
  const small = await newRsaKey(2048)
  const rsa = signTransaction({ ...unsigned, denomination: 2 }, small)
  const ecdsa = signTransactionEcdsa({ ...unsigned, denomination: 2 }, Buffer.alloc(32, 7))
  for (const tx of [rsa, ecdsa]) {
    t.equal(verifyTransaction(tx), true)
    t.equal(transactionJson(tx).denomination, '2')
  }
  t.match(verifyTransaction({ ...rsa, denomination: 1 }), { refused: 'forged' })
  t.match(verifyTransaction({ ...rsa, denomination: 0 }), { refused: 'forged' })
  t.match(
    verifyTransaction({ ...rsa, format: 1 }),
    { refused: 'forged' },
    'such a signature leaves out the data',
  )
})

t.test(
  'the id of format 1 does not bind its fields: others, cut elsewhere, have the same signature',
  async (t) => {
    const whole = Buffer.from('The first 32 bytes are a target. The rest is what is left')
    const plain = { ...unsigned, format: 1 as const, target: Buffer.alloc(0), dataRoot: Buffer.alloc(0) }
    const amounts = { quantity: 12n, reward: 345n, data: whole, dataSize: whole.length }
    const signed = signTransaction({ ...plain, ...amounts }, jwk)
    t.equal(verifyTransaction(signed), true)
    const others: Partial<Transaction>[] = [
      { target: whole.subarray(0, 32), data: whole.subarray(32), dataSize: whole.length - 32 },
      { data: Buffer.concat([whole, Buffer.from('1')]), dataSize: whole.length + 1, quantity: 2n },
    ]
    for (const other of others) t.equal(verifyTransaction({ ...signed, ...other }), true)
    t.notOk(isBoundById(signed))
    t.ok(isBoundById({ format: 2, owner: signed.owner }))
    t.notOk(isBoundById({ format: 2, owner: Buffer.alloc(0) }), 'where the key is recovered')
  },
)
