import t from 'tap'
import { bundleAgenda } from '../../src/ingest/bundle-tasks.js'
import { Intake } from '../../src/ingest/chain-intake.js'
import { sha256 } from '../../src/proof/digest.js'
import { signTransactionEcdsa } from '../../src/proof/sign.js'
import { ownerOf } from '../../src/proof/transaction-proof.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { folder } from './house.js'

const unsigned = {
  format: 2,
  lastTx: Buffer.alloc(48, 1),
  target: Buffer.alloc(0),
  tags: [
    ['Bundle-Format', 'binary'],
    ['Bundle-Version', '2.0.0'],
  ].map(([name = '', value = '']) => ({ name: Buffer.from(name), value: Buffer.from(value) })),
  quantity: 0n,
  reward: 1n,
  dataSize: 100,
  dataRoot: Buffer.alloc(32, 3),
  data: Buffer.alloc(0),
  denomination: 0,
} as const

t.test('bundles of keys that their transactions do not carry have turns of their own', async (t) => {
  const environment = openEnvironment(folder(t))
  t.teardown(() => environment.close())
  const agenda = bundleAgenda(environment, 100)
  const intake = new Intake(agenda, agenda, { kind: 'always' })
  const [many, few] = [7, 8].map((key) => signTransactionEcdsa(unsigned, Buffer.alloc(32, key)))
  if (many === undefined || few === undefined) throw new Error('none')
  t.equal(many.owner.length, 0)
  t.equal(intake.rememberBundles([many, few], 1), 0)
  const parties = agenda.due(2, 9).map((task) => agenda.partyName(task))
  const named = [many, few].map((one) =>
    Buffer.from(sha256(ownerOf(one)))
      .toString('hex')
      .slice(0, 16),
  )
  t.strictSame(parties.sort(), named.sort())
})
