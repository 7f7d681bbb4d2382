import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { claimFolder } from '../../src/actor/claim.js'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { loadSigningKey } from '../../src/attest/keys.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey, rotateHeadKey } from '../../src/ledger/head-key.js'
import { itemKey } from '../../src/upload/records/item-key.js'
import { topUp } from '../conformance/ledger.js'
import { sluice } from '../flow/running.js'

/** A data folder with each key, as a start leaves it. */
function place(t: Test): { readonly root: string; readonly keys: string } {
  const root = join(t.testdir(), 'data')
  const keys = join(root, 'keys')
  mkdirSync(keys, { recursive: true, mode: 0o700 })
  writeFileSync(join(keys, 'admin.key'), 'the old admin key\n'.replaceAll(' ', '-'), { mode: 0o600 })
  loadSigningKey({ keyFile: join(keys, 'httpsig.pem') })
  headKey(join(keys, 'ledger.pem'))
  itemKey(join(keys, 'unsigned-items.key'))
  const wallet = new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url)
  writeFileSync(join(keys, 'upload.json'), readFileSync(wallet), { mode: 0o600 })
  return { root, keys }
}

t.test(
  'each key is replaced, readable by its owner alone, and only the key of the operator while the program runs',
  async (t) => {
    const { root, keys } = place(t)
    const environment = { DATA_PATH: root }
    const text = (name: string): string => readFileSync(join(keys, name), 'utf8')
    const before = Object.fromEntries(readdirSync(keys).map((name) => [name, text(name)]))
    const claim = await claimFolder(root)
    for (const what of ['signing', 'ledger', 'upload', 'items'])
      t.match(await sluice(['rotate', what], environment), { code: 1, err: /another sluice is running/ })
    const set = { ...environment, ADMIN_API_KEY: 'of-the-settings' }
    t.match(await sluice(['rotate', 'admin'], set), { code: 1, err: /change the setting/ })
    t.match(await sluice(['rotate', 'nothing'], environment), { code: 2 })
    t.strictSame(Object.fromEntries(readdirSync(keys).map((name) => [name, text(name)])), before)

    const files = {
      admin: 'admin.key',
      signing: 'httpsig.pem',
      ledger: 'ledger.pem',
      upload: 'upload.json',
      items: 'unsigned-items.key',
    }
    for (const [what, name] of Object.entries(files)) {
      // A running program can take up this one.
      if (what === 'signing') await claim.release()
      const done = await sluice(['rotate', what], environment)
      t.equal(done.code, 0, done.err)
      t.not(text(name), before[name], what)
      t.equal(statSync(join(keys, name)).mode & 0o777, 0o600)
      t.notMatch(done.out, text(name).trim(), 'a secret is never shown')
    }
    const old = readdirSync(keys).filter((name) => name.startsWith('upload.json.old-'))
    t.equal(old.length, 1)
    t.equal(text(old[0] ?? ''), before['upload.json'], 'a wallet may hold money')
    const all = readdirSync(keys)
    t.notOk(
      all.some((name) => text(name) === before['ledger.pem'] || text(name) === before['httpsig.pem']),
      'the other private keys are gone',
    )
    t.match(loadSigningKey({ keyFile: join(keys, 'httpsig.pem') }), { keyId: /^ed25519:/ })
  },
)

t.test(
  'what the ledger key signed before it was replaced counts on, and nothing that it signs later',
  async (t) => {
    const root = t.testdir()
    const keyPath = join(root, 'ledger.pem')
    let nowMs = 1_000_000
    const clock: Clock = { ...systemClock, now: () => nowMs }
    const open = (): EmbeddedLedger =>
      new EmbeddedLedger({ path: join(root, 'ledger'), clock, key: headKey(keyPath) })
    const signOne = async (ledger: EmbeddedLedger, id: string): Promise<void> => {
      await ledger.commit({ transfers: [topUp(id, 'somebody', 5n)] })
      await ledger.signHead()
      nowMs += 1000
    }
    const first = open()
    await signOne(first, 'one')
    rotateHeadKey(keyPath, nowMs)
    // This one still has the old key, as whoever stole it has.
    nowMs += 1000
    await first.close()
    const second = open()
    await signOne(second, 'two')
    t.match(await second.check(), { signedHeads: 2, faults: [] })
    await second.close()
    rotateHeadKey(keyPath, nowMs)
    const third = open()
    t.match(await third.check(), { signedHeads: 2, faults: [] }, 'after a second rotation, too')
    await third.close()
    const key = headKey(keyPath)
    const stolen = headKey(join(root, 'stolen.pem'))
    rotateHeadKey(join(root, 'stolen.pem'), 5000)
    const mine = headKey(join(root, 'stolen.pem'))
    const statement = (timeMs: number) => ({
      sequence: 1,
      head: 'ab',
      timeMs,
      signature: stolen.sign(1, 'ab', timeMs),
    })
    t.ok(mine.hasSigned(statement(5000)))
    t.notOk(mine.hasSigned(statement(5001)), 'signed after the rotation')
    t.notOk(key.hasSigned(statement(4000)), 'by a stranger')
    writeFileSync(join(root, 'stolen.pem.retired.json'), '[{}]')
    t.throws(() => headKey(join(root, 'stolen.pem')), 'a list that was not written here')
  },
)
