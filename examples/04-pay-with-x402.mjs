// Buys content for USDC where the free allowance is used up (x402), by a stock client. The gateway needs
// ENABLE_RATE_LIMITER=true and ENABLE_X_402_USDC_DATA_EGRESS=true with a network, a wallet and a facilitator.
// PRIVATE_KEY=0x... node examples/04-pay-with-x402.mjs ID
//
// On devnet no money is needed, because the embedded node settles for any key. Start the gateway so:
//   ENABLE_RATE_LIMITER=true RATE_LIMITER_IP_TOKENS_PER_BUCKET=2 ENABLE_X_402_USDC_DATA_EGRESS=true \
//   X_402_USDC_NETWORK=base-sepolia X_402_USDC_WALLET_ADDRESS=0x000000000000000000000000000000000000dEaD \
//   X_402_USDC_FACILITATOR_URL=http://127.0.0.1:1984/x402 npm start
// Then, with the id of the image that its list names: node examples/04-pay-with-x402.mjs ID
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const url = `${gateway}/raw/${process.argv[2]}`
const signer = privateKeyToAccount(process.env.PRIVATE_KEY ?? generatePrivateKey())

const unpaid = await fetch(url)
console.log(`without payment: ${unpaid.status}`)
await unpaid.arrayBuffer()
const pay = wrapFetchWithPayment(fetch, registerExactEvmScheme(new x402Client(), { signer }))
const paid = await pay(url)
const sizeBytes = (await paid.arrayBuffer()).byteLength
console.log(`with payment:    ${paid.status}, ${sizeBytes} bytes`)
const receipt = paid.headers.get('payment-response')
if (receipt !== null) console.log('receipt:', JSON.parse(Buffer.from(receipt, 'base64').toString()))
if (paid.status !== 200) process.exitCode = 1
