import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { loadSigningKey } from '../../src/attest/keys.js'
import { encodeBase58 } from '../../src/format/base58.js'
import { scratch } from '../scratch.js'

const folder = scratch('keys')

/** RFC 8032 section 7.1, test 1. */
const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'
const known = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const secret = Buffer.from(seed + known, 'hex')

t.test('a missing key file is made, readable by its owner only, and read again', async (t) => {
  const keyFile = join(folder, 'deep/er/httpsig.pem')
  const made = loadSigningKey({ keyFile })
  t.equal(statSync(keyFile).mode & 0o777, 0o600)
  t.equal(createPrivateKey(readFileSync(keyFile)).asymmetricKeyType, 'ed25519')
  t.match(made.keyId, /^ed25519:[A-Za-z0-9_-]{43}$/)
  t.equal(loadSigningKey({ keyFile }).keyId, made.keyId)
  t.same(readdirSync(join(folder, 'deep/er')), ['httpsig.pem'], 'no draft is left')
})

t.test('threads that start at once get one key', async (t) => {
  const keyFile = join(folder, 'raced.pem')
  const module = new URL('../../src/attest/keys.js', import.meta.url).href
  const code = `import('${module}').then(({ loadSigningKey }) => {
    require('node:worker_threads').parentPort.postMessage(loadSigningKey({ keyFile: '${keyFile}' }).keyId)
  })`
  const ids = await Promise.all(
    [1, 2, 3, 4].map(
      () =>
        new Promise((resolve, reject) => {
          new Worker(code, { eval: true }).on('message', resolve).on('error', reject)
        }),
    ),
  )
  t.equal(new Set(ids).size, 1)
  t.equal(loadSigningKey({ keyFile }).keyId, ids[0])
})

t.test('an observer keypair signs instead of the key file, from either form', async (t) => {
  const keyFile = join(folder, 'never-made.pem')
  const observerKeypairPath = join(folder, 'observer.json')
  writeFileSync(observerKeypairPath, JSON.stringify([...secret]))
  const fromFile = loadSigningKey({ keyFile, observerKeypairPath })
  const fromText = loadSigningKey({ keyFile, observerPrivateKey: encodeBase58(secret) })
  for (const key of [fromFile, fromText]) {
    t.equal(Buffer.from(key.publicKey).toString('hex'), known)
    t.equal(key.keyId, `ed25519:${Buffer.from(known, 'hex').toString('base64url')}`)
    t.equal(key.solanaAddress, 'FVen3X669xLzsi6N2V91DoiyzHzg1uAgqiT8jZ9nS96Z')
  }
  t.notOk(readdirSync(folder).includes('never-made.pem'))
})

t.test('what cannot be a key stops the start, names the setting and shows no secret', async (t) => {
  const keyFile = join(folder, 'bad.pem')
  const other = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' })
  const mixed = Buffer.concat([other.subarray(-32), secret.subarray(32)])
  const path = join(folder, 'observer-bad.json')
  const attempts: [() => unknown, RegExp][] = [
    [
      () => loadSigningKey({ keyFile, observerKeypairPath: path, observerPrivateKey: 'x' }),
      /OBSERVER_KEYPAIR_PATH and OBSERVER_PRIVATE_KEY/,
    ],
    [
      () => loadSigningKey({ keyFile, observerKeypairPath: join(folder, 'none.json') }),
      /OBSERVER_KEYPAIR_PATH.*ENOENT/,
    ],
    [
      () => loadSigningKey({ keyFile, observerPrivateKey: 'not base58 0OIl' }),
      /^Error: OBSERVER_PRIVATE_KEY/,
    ],
    [() => loadSigningKey({ keyFile, observerPrivateKey: encodeBase58(mixed) }), /public half/],
  ]
  for (const [attempt, message] of attempts)
    t.throws(attempt, { message: new RegExp(message.source.replace('^Error: ', '^')) })
  for (const text of ['[1,2,3]', '{"secret": 1}', `[${'256,'.repeat(63)}1]`, 'super secret words']) {
    writeFileSync(path, text)
    t.throws(() => loadSigningKey({ keyFile, observerKeypairPath: path }), {
      message: /^OBSERVER_KEYPAIR_PATH: (?!.*secret words)/,
    })
  }
  writeFileSync(
    keyFile,
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
  )
  t.throws(() => loadSigningKey({ keyFile }), { message: /HTTPSIG_KEY_FILE.*Ed25519/ })
})
