/** AR from wallets whose transactions carry no owner: secp256k1 keys, whose items are of type 3. */
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import type { Id } from '../../../src/format/id.js'
import type { Transaction } from '../../../src/format/transaction.js'
import { ArweaveReader } from '../../../src/payment/chains/arweave-reader.js'
import { signTransactionEcdsa } from '../../../src/proof/sign.js'
import { ownerOf } from '../../../src/proof/transaction-proof.js'
import { type PaymentRig, paymentRig } from '../rig.js'

const own = Buffer.alloc(32, 9).toString('base64url')
const alice = Buffer.alloc(32, 1).toString('base64url')
interface Keys {
  readonly secret: Uint8Array
  readonly arweave: string
  readonly ethereum: string
}

function keysOf(secret: Uint8Array): Keys {
  return {
    secret,
    arweave: createHash('sha256')
      .update(ownerOf(payment(secret, 1n)))
      .digest('base64url'),
    ethereum: privateKeyToAccount(`0x${Buffer.from(secret).toString('hex')}`).address,
  }
}

const [mine, other] = [keysOf(Buffer.alloc(32, 6)), keysOf(Buffer.alloc(32, 7))]

function payment(secret: Uint8Array, quantity: bigint, aim?: string): Transaction {
  const tags = aim === undefined ? [] : [{ name: 'Turbo-Credit-Destination-Address', value: aim }]
  const nothing = new Uint8Array(0)
  const facts = {
    format: 2,
    reward: 1n,
    dataSize: 0,
    data: nothing,
    dataRoot: nothing,
    denomination: 0,
  } as const
  return signTransactionEcdsa(
    {
      ...facts,
      lastTx: Buffer.alloc(48, 5),
      target: Buffer.from(own, 'base64url'),
      quantity,
      tags: tags.map(({ name, value }) => ({ name: Buffer.from(name), value: Buffer.from(value) })),
    },
    secret,
  )
}

/** Nodes that have what was given, deep in a block. */
async function paid(
  t: Test,
  excluded: readonly string[] = [],
): Promise<{
  rig: PaymentRig
  pay: (tx: Transaction) => Promise<{ status: number; text: string; json: unknown }>
}> {
  const mined = new Map<Id, Transaction>()
  const found = async (id: Id): Promise<Transaction> => mined.get(id) as Transaction
  const nodes = {
    transaction: found,
    agreedTransaction: found,
    pendingTransaction: found,
    agreedStatus: async () => ({ kind: 'mined', height: 7, block: 'x' as never, confirmations: 3 }) as const,
  }
  const readers = [new ArweaveReader(nodes, 3)]
  const rig = await paymentRig(t, { readers, addresses: { arweave: own }, excluded })
  const pay = (tx: Transaction) => {
    mined.set(tx.id, tx)
    return rig.post('/v1/account/balance/arweave', JSON.stringify({ tx_id: tx.id }))
  }
  return { rig, pay }
}

const balance = async (rig: PaymentRig, address: string): Promise<string | undefined> =>
  (await rig.service.balanceOf(address))?.winc

t.test('the key that paid can spend', async (t) => {
  const { rig, pay } = await paid(t)
  t.match(await pay(payment(mine.secret, 1_000_000n)), {
    status: 200,
    json: {
      creditedTransaction: {
        transactionSenderAddress: mine.arweave,
        destinationAddress: mine.ethereum,
        destinationAddressType: 'ethereum',
      },
    },
  })
  t.equal(await balance(rig, mine.ethereum), '766000')
  t.equal(await balance(rig, mine.arweave), '766000', 'the address of its transactions shows the same')
  const nobody = createHash('sha256').update('').digest('base64url')
  t.equal(await balance(rig, nobody), undefined)
  await pay(payment(mine.secret, 10_000_000n))
  const { ethereum: address } = mine
  t.match(
    await rig.service.credits.reserve({ itemId: 'i', bytes: 0, address, signatureType: 3, paidBy: [] }),
    { paid: true },
  )
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('credits for the address of such a key, and for others', async (t) => {
  const { rig, pay } = await paid(t)
  t.equal((await pay(payment(mine.secret, 1_000_000n, mine.arweave))).status, 200)
  t.equal(await balance(rig, mine.ethereum), '766000', 'it names itself')
  t.equal((await pay(payment(mine.secret, 2_000_000n, alice))).status, 200)
  t.equal(await balance(rig, alice), '1532000')
  t.equal((await pay(payment(mine.secret, 3_000_000n, other.arweave))).status, 200)
  t.equal(await balance(rig, other.arweave), '2298000', 'its key was not seen yet')
  t.equal((await pay(payment(other.secret, 1_000_000n))).status, 200)
  t.equal(await balance(rig, other.ethereum), '3064000', 'and takes what was put there')
  t.equal((await pay(payment(mine.secret, 5_000_000n, other.arweave))).status, 200)
  t.equal(await balance(rig, other.ethereum), '6894000')
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('such a key is excluded by each of its addresses', async (t) => {
  for (const address of [mine.arweave, mine.ethereum, mine.ethereum.toLowerCase()]) {
    const { rig, pay } = await paid(t, [address])
    t.match(await pay(payment(mine.secret, 1_000_000n)), { status: 403, text: new RegExp(mine.arweave) })
    t.equal(await balance(rig, mine.ethereum), undefined)
    t.equal((await pay(payment(other.secret, 1_000_000n))).status, 200)
  }
})
