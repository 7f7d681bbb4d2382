// Puts a text onto the embedded chain with a new wallet, and reads it back through the gateway (`arweave`).
// node examples/05-post-a-transaction.mjs [TEXT]
import Arweave from 'arweave'

const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const node = new URL(process.env.NODE ?? 'http://127.0.0.1:1984')
const text = process.argv[2] ?? `Hello at ${new Date().toISOString()}`

const arweave = Arweave.init({ host: node.hostname, port: node.port, protocol: 'http' })
const wallet = await arweave.wallets.generate()
const address = await arweave.wallets.jwkToAddress(wallet)
await fetch(new URL(`/mint/${address}/1000000000000`, node))

const transaction = await arweave.createTransaction({ data: text }, wallet)
transaction.addTag('Content-Type', 'text/plain; charset=utf-8')
await arweave.transactions.sign(transaction, wallet)
const { status } = await arweave.transactions.post(transaction)
if (status !== 200) throw new Error(`the node answered ${status}`)
console.log(`posted ${transaction.id}; the next block takes it`)
await fetch(new URL('/mine', node))

for (let tries = 1; ; tries += 1) {
  const answer = await fetch(`${gateway}/raw/${transaction.id}`)
  const body = await answer.text()
  if (answer.status === 200) {
    console.log(`${gateway}/${transaction.id}: ${body}`)
    if (body !== text) process.exitCode = 1
    break
  }
  if (answer.status !== 404 || tries === 100) throw new Error(`${answer.status} ${body}`)
  await new Promise((resolve) => setTimeout(resolve, 200))
}
