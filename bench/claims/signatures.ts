import { generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { parseArgs } from 'node:util'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { ed25519SignerOf, verifyEd25519 } from '../../native/ed25519/ed25519.js'
import { recoverSecp256k1, secp256k1SignerOf, verifySecp256k1 } from '../../native/secp256k1/secp256k1.js'
import { systemClock } from '../../src/actor/clock.js'
import { say } from '../kit/say.js'

const help = `signatures: how many signatures each library checks, or makes, in one second of processor time

  --seconds N  for each (2)
`

const message = Buffer.alloc(48, 7)
/** As long as what is signed of an answer. */
const statement = Buffer.alloc(400, 7)
const p1363 = 'ieee-p1363'

interface Case {
  readonly name: string
  check(): boolean
}

/** The bytes of an Ed25519 key, as noble takes them. */
function rawKey(key: KeyObject): Uint8Array {
  return key.export({ type: 'spki', format: 'der' }).subarray(-32)
}

function cases(): Case[] {
  const ed = generateKeyPairSync('ed25519')
  const edSignature = sign(null, message, ed.privateKey)
  const edKey = rawKey(ed.publicKey)
  const signed = ed25519SignerOf(ed.privateKey)
  const ec = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
  const ecSignature = sign('sha256', message, { key: ec.privateKey, dsaEncoding: p1363 })
  const secret = secp256k1.utils.randomSecretKey()
  const signed32 = secp256k1SignerOf(secret)
  const publicKey = secp256k1.getPublicKey(secret)
  const publicKey65 = secp256k1.getPublicKey(secret, false)
  const options = { prehash: false } as const
  const plain32 = secp256k1.sign(message.subarray(0, 32), secret, options)
  const made32 = secp256k1.sign(message.subarray(0, 32), secret, { ...options, format: 'recovered' })
  const plain = secp256k1.sign(message, secret)
  const recovered = secp256k1.sign(message, secret, { format: 'recovered' })
  return [
    { name: 'Ed25519, own', check: () => verifyEd25519(edKey, message, edSignature) },
    { name: 'Ed25519, node:crypto', check: () => verify(null, message, ed.publicKey, edSignature) },
    { name: 'Ed25519, noble', check: () => ed25519.verify(edSignature, message, edKey) },
    { name: 'Ed25519 signed, own', check: () => signed(statement).length === 64 },
    {
      name: 'Ed25519 signed, node:crypto',
      check: () => sign(null, statement, ed.privateKey).length === 64,
    },
    {
      name: 'secp256k1 over SHA-256, node:crypto',
      check: () => verify('sha256', message, { key: ec.publicKey, dsaEncoding: p1363 }, ecSignature),
    },
    { name: 'secp256k1, own', check: () => verifySecp256k1(publicKey65, message.subarray(0, 32), plain32) },
    {
      name: 'secp256k1, key recovered, own',
      check: () =>
        recoverSecp256k1(message.subarray(0, 32), made32.subarray(1), made32[0] ?? 0) !== undefined,
    },
    { name: 'secp256k1 signed, own', check: () => signed32(message.subarray(0, 32)).length === 65 },
    {
      name: 'secp256k1 signed, noble',
      check: () => secp256k1.sign(message.subarray(0, 32), secret, options).length === 64,
    },
    { name: 'secp256k1, noble', check: () => secp256k1.verify(plain, message, publicKey) },
    {
      name: 'secp256k1, key recovered, noble',
      check: () => secp256k1.recoverPublicKey(recovered, message).length === publicKey.length,
    },
  ]
}

const { values } = parseArgs({ options: { help: { type: 'boolean' }, seconds: { type: 'string' } } })
if (values.help === true) say(help)
else {
  for (const { name, check } of cases()) {
    const endMs = systemClock.monotonic() + Number(values.seconds ?? 2) * 1000
    const before = process.cpuUsage()
    let count = 0
    for (; systemClock.monotonic() < endMs; count += 1)
      if (!check()) throw new Error(`${name}: a good signature was refused`)
    const { user, system } = process.cpuUsage(before)
    say(`${name}: ${((count * 1e6) / (user + system)).toFixed(0)} a second`)
  }
}
