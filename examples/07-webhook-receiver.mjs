// Receives a gateway's events and checks that they are the gateway's (Standard Webhooks: HMAC-SHA-256 over id, time and body).
// Start the gateway with WEBHOOK_TARGET_SERVERS=http://127.0.0.1:4000/ WEBHOOK_BLOCK_FILTER='{"always":true}'.
// node examples/07-webhook-receiver.mjs data/keys/webhook.secret
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const port = Number(process.env.WEBHOOK_PORT ?? 4000)
const seen = new Set()

createServer((request, response) => {
  const pieces = []
  request.on('data', (piece) => pieces.push(piece))
  request.on('end', () => {
    const body = Buffer.concat(pieces)
    const id = request.headers['webhook-id'] ?? ''
    if (!isGenuine(id, request.headers, body)) {
      response.writeHead(401).end()
      console.log('refused: not signed by the gateway')
      return
    }
    response.writeHead(204).end()
    // Each event comes at least once: its id tells whether it was here before.
    if (seen.has(id)) return
    seen.add(id)
    const { event, data } = JSON.parse(body.toString())
    console.log(`${event} ${JSON.stringify(data).slice(0, 120)}`)
  })
}).listen(port, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${port}`))

function isGenuine(id, headers, body) {
  // Read each time: the gateway makes the secret at its first start, which may come later.
  const secret = readFileSync(process.argv[2] ?? 'data/keys/webhook.secret', 'utf8').trim()
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signed = Buffer.concat([Buffer.from(`${id}.${headers['webhook-timestamp']}.`), body])
  const expected = createHmac('sha256', key).update(signed).digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .map((one) => Buffer.from(one.replace(/^v1,/, ''), 'base64'))
    .some((one) => one.length === expected.length && timingSafeEqual(one, expected))
}
