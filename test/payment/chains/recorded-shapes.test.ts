/**
 * The answers of nodes that other tests repeat, read by clients of others: what those do not understand, no node says. What we
 * ask is what they ask.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { encodeBase58 } from '../../../src/format/base58.js'
import { SolanaReader } from '../../../src/payment/chains/solana-reader.js'
import { key, kyveOwn, kyvePayer, type Recorded, recorded, sent } from './recorded-answers.js'
import { answeringServer } from './recorded-rpc.js'

const clients = fileURLToPath(new URL('../../../../test/clients/package.json', import.meta.url))
const web3Path = fileURLToPath(
  new URL('../../../../test/clients/node_modules/@solana/web3.js/package.json', import.meta.url),
)
const cosmosPath = fileURLToPath(
  new URL('../../../../test/clients/node_modules/cosmjs-types/package.json', import.meta.url),
)
const load = createRequire(clients)

/** What of the library is used; it is too large to be a dependency for its types. */
interface Web3 {
  readonly Connection: new (
    url: string,
    commitment: string,
  ) => {
    getTransaction(
      id: string,
      config: { readonly commitment: string; readonly maxSupportedTransactionVersion: number },
    ): Promise<{
      readonly slot: number
      readonly meta: {
        readonly preBalances: number[]
        readonly postBalances: number[]
        readonly err: unknown
      }
      readonly transaction: {
        readonly message: {
          getAccountKeys(tables: object): { keySegments(): readonly { toBase58(): string }[][] }
        }
      }
    } | null>
  }
}

const [own, payer, mint] = [key(9), key(1), key(50)]
const id = encodeBase58(Buffer.alloc(64, 7))
const shapes: readonly [what: string, shape: Recorded][] = [
  ['coins', { keys: [payer, own], before: [3e9, 1e9], after: [2e9 - 5000, 2e9] }],
  [
    'tokens and a memo',
    {
      keys: [payer, key(11), key(19)],
      before: [1e9, 2e6, 2e6],
      after: [1e9 - 5000, 2e6, 2e6],
      tokens: [
        [mint, payer, '7', '0'],
        [mint, own, '10', '17'],
      ],
      memo: `turboCreditDestinationAddress=${key(2)}`,
    },
  ],
  [
    'one that failed',
    {
      keys: [payer, own],
      before: [3, 1],
      after: [2, 2],
      err: { InstructionError: [0, { Custom: 1 }] },
    },
  ],
  [
    'lookup tables',
    {
      keys: [payer],
      loaded: { writable: [key(3), own], readonly: [key(4)] },
      before: [3e9, 1, 1, 7, 1e9, 1],
      after: [2e9 - 5000, 1, 1, 7, 2e9, 1],
    },
  ],
]

t.test(
  'Solana: @solana/web3.js reads what is repeated, and asks the same',
  { skip: existsSync(web3Path) ? false : 'install test/clients to run it' },
  async (t) => {
    const { Connection } = load('@solana/web3.js') as Web3
    let result: object = {}
    const calls: unknown[] = []
    const url = await answeringServer(t, ({ body }) => {
      const { id: number, jsonrpc, method, params } = body as Record<string, unknown>
      calls.push({ jsonrpc, method, params })
      return { jsonrpc: '2.0', id: number, result }
    })
    const connection = new Connection(url, 'finalized')
    const reader = new SolanaReader(
      { url, wallet: own, mints: { 'solana-usdc': mint }, limitMs: 60_000 },
      systemClock,
    )
    t.teardown(() => reader.close())
    for (const [what, shape] of shapes) {
      result = recorded(shape)
      calls.length = 0
      const config = { commitment: 'finalized', maxSupportedTransactionVersion: 0 }
      // It checks every field of the answer and throws where one is missing or of another type.
      const found = await connection.getTransaction(id, config)
      t.equal(found?.slot, 331_000_123, what)
      t.strictSame(found?.meta.postBalances, shape.after, what)
      const token = shape.tokens === undefined ? 'solana' : 'solana-usdc'
      const ours = await reader.find(token, id)
      const [theirs, first] = calls as Record<string, unknown>[]
      const plain = (one: unknown): unknown => JSON.parse(JSON.stringify(one))
      const [asksThem, asksUs] = [plain(theirs), plain(first)] as { method: string; params: unknown[] }[]
      t.equal(asksUs?.method, asksThem?.method)
      t.strictSame(asksUs?.params[0], id)
      // `json` is what a node takes where no encoding is requested.
      t.strictSame(asksUs?.params[1], { encoding: 'json', ...(asksThem?.params[1] as object) })
      if (shape.err !== undefined) {
        t.match(ours, { wrong: /failed/ })
        continue
      }
      const quantity = shape.tokens === undefined ? 10n ** 9n : 7n
      t.match(ours, { quantity, sender: payer, recipient: own, isFinal: true })
    }
  },
)

/** Fields of protobuf as its JSON has them, from those that the REST interface shows. */
function camel(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camel)
  if (typeof value !== 'object' || value === null) return value
  const renamed = (name: string): string =>
    name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [renamed(name), camel(one)]))
}

interface Protobuf {
  fromJSON(value: unknown): object
  toJSON(value: object): Record<string, unknown>
}

t.test(
  'KYVE: each field that is repeated is one of the Cosmos SDK',
  { skip: existsSync(cosmosPath) ? false : 'install test/clients to run it' },
  async (t) => {
    const { TxResponse } = load('cosmjs-types/cosmos/base/abci/v1beta1/abci.js') as { TxResponse: Protobuf }
    const { TxBody } = load('cosmjs-types/cosmos/tx/v1beta1/tx.js') as { TxBody: Protobuf }
    const { MsgSend } = load('cosmjs-types/cosmos/bank/v1beta1/tx.js') as { MsgSend: Protobuf }
    const response = sent('A'.repeat(64), { memo: 'for me' })
    // What the types do not know is not in what they say again.
    const same = (type: Protobuf, value: object): void => {
      const wanted = camel(value) as Record<string, unknown>
      const written = type.toJSON(type.fromJSON(wanted))
      for (const [name, one] of Object.entries(wanted)) t.strictSame(written[name], one, name)
    }
    same(TxResponse, response.tx_response)
    const { messages, ...body } = response.tx.body
    same(TxBody, body)
    const [{ '@type': type, ...message } = { '@type': '' }] = messages
    t.equal(
      type,
      (load('cosmjs-types/cosmos/bank/v1beta1/tx.js') as { MsgSend: { typeUrl: string } }).MsgSend.typeUrl,
    )
    same(MsgSend, message)
    t.match(MsgSend.toJSON(MsgSend.fromJSON(camel(message))), {
      fromAddress: kyvePayer,
      toAddress: kyveOwn,
      amount: [{ denom: 'ukyve', amount: '1000000' }],
    })
  },
)
