/** Requests that bring a payment which has paid for an item: its name is public, and so is all but the signature. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { usdcOf } from '../../../src/admission/usdc.js'
import type { ListedReceipt } from '../../../src/cluster/items-elsewhere.js'
import { encodeBase64url } from '../../../src/format/base64url.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { transferFields } from '../../../src/proof/transfer-authorization.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../../src/upload/requests/upload-answers.js'
import { newAccount, payee } from '../../admission/scene.js'
import { answered, requestOf, type UploadRig, uploadRig } from '../upload-rig.js'

const path = '/x402/upload/signed'
const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.alloc(400_000, 'x'))

async function rigOf(t: Test): Promise<UploadRig> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  // Timers of the system's clock keep no process alive.
  const awake = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(awake))
  const made = { payment: 'p', units: '1000', transaction: '0x1', payer: '0xa', network: 'base-sepolia' }
  return uploadRig(t, environment, {
    look: async () => ({ good: true, units: '0' }),
    pay: async () => ({ paid: true, winc: '7', lines: '', ...made }),
  })
}

/** A payment, and the header that brings it with this signature. */
async function signedPayment() {
  const payer = newAccount()
  const { name, version, chainId, address } = usdcOf['base-sepolia']
  const authorization = {
    from: payer.address,
    to: payee,
    value: '1000',
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + 600),
    nonce: `0x${randomBytes(32).toString('hex')}`,
  } as const
  const signature = await payer.signTypedData({
    domain: { name, version, chainId, verifyingContract: address as `0x${string}` },
    types: { TransferWithAuthorization: [...transferFields] },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: 1000n,
      validAfter: 0n,
      validBefore: BigInt(authorization.validBefore),
    },
  })
  const headerWith = (words: string): string => {
    const payload = { signature: words, authorization }
    const given = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
    return Buffer.from(JSON.stringify(given)).toString('base64')
  }
  return { signature, headerWith }
}

/** Posts bytes as large as the item. */
async function post(rig: UploadRig, header: string, body = item): Promise<UploadAnswer & { taken: number }> {
  const headers = { 'content-length': String(item.length), 'x-payment': header }
  const pieces = Array.from({ length: 4 }, (_, at) =>
    body.subarray(at * 1e5, at === 3 ? body.length : at * 1e5 + 1e5),
  )
  const request = requestOf('POST', path, { headers, pieces })
  const answer = await answered(rig, path, request)
  return { ...answer, taken: request.taken() }
}

t.test('no body is read for a payment that its payer has not signed', async (t) => {
  const rig = await rigOf(t)
  const { signature, headerWith } = await signedPayment()
  t.match(await post(rig, headerWith(signature)), { status: 200, taken: item.length })
  for (const bytes of [65, 66, 200]) {
    const forged = await post(
      rig,
      headerWith(`0x${randomBytes(bytes).toString('hex')}`),
      randomBytes(item.length),
    )
    t.match(forged, { status: 402, taken: 0 }, `${bytes} bytes that somebody made up`)
  }
  t.match(await post(rig, headerWith(signature)), { status: 200 }, 'who has paid gets the receipt again')
  const recovery = signature.endsWith('1b') ? '00' : '01'
  const other = `${signature.slice(0, -2)}${recovery}`
  t.match(await post(rig, headerWith(other)), { status: 200 }, 'in whichever form the payer has signed it')
})

t.test('a payment of a wallet of a contract is known by its signature', async (t) => {
  const rig = await rigOf(t)
  const { headerWith } = await signedPayment()
  const ofContract = `0x${'a1'.repeat(200)}`
  t.match(await post(rig, headerWith(ofContract)), { status: 200 })
  t.match(await post(rig, headerWith(ofContract)), { status: 200 })
  t.match(await post(rig, headerWith(`0x${'a2'.repeat(200)}`)), { status: 402, taken: 0 })
})

t.test('what another service was paid for becomes credits only where its item is not accepted', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const firstId = encodeBase64url(randomBytes(32))
  const made = { payment: 'p', transaction: '0x1', payer: '0xa', network: 'base-sepolia', lines: '' }
  const first = { ...made, itemId: firstId, owner: '', units: '1000' }
  const stated: (string | undefined)[] = []
  let listed: ListedReceipt | 'none' | undefined
  const rig = await uploadRig(t, environment, {
    look: async () => ({ good: true, units: '0' }),
    pay: async ({ notAccepted }) => {
      stated.push(notAccepted)
      const credited = { status: 402, json: { error: 'payment_credited' }, lines: '' }
      return notAccepted === firstId
        ? credited
        : { status: 503, json: {}, lines: '', elsewhere: 'held', first }
    },
    outcome: async () => ({ paid: false, state: 'other' }),
    machines: {
      add: async () => true,
      has: async () => false,
      receiptOf: async (id) => (id === firstId ? listed : 'none'),
      beginSale: async () => '1',
      addToSale: async () => true,
      renewSales: async () => new Set<never>(),
      endSales: async () => true,
      sweepSales: async () => false,
    },
  })
  const { signature, headerWith } = await signedPayment()
  const repeated = (): Promise<UploadAnswer> => post(rig, headerWith(signature))
  t.match(await repeated(), { status: 503 }, 'the database does not answer')
  listed = { receivedMs: 5, deadlineHeight: 100, winc: '7' }
  t.match(
    await repeated(),
    { status: 200, json: { id: firstId, winc: '7' } },
    'it is accepted, and not spent yet',
  )
  t.strictSame(stated, [undefined, undefined])
  listed = 'none'
  t.match(await repeated(), { status: 402, json: { error: 'payment_credited' } })
  t.strictSame(stated.slice(2), [undefined, firstId])
})
