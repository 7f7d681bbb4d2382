/** Letters about gifts: by a mail server that speaks SMTP, or in the outbox for the operator to read. */
import t from 'tap'
import { SmtpMailer } from '../../../src/payment/letters/smtp-mailer.js'
import { makeServiceToken } from '../../../src/payment/requests/service-token.js'
import { type PaymentRig, paymentRig, secret } from '../rig.js'
import { mailServer } from './mail-server.js'

const start = Date.UTC(2026, 0, 1)

async function give(rig: PaymentRig, to: string): Promise<string> {
  const query = 'destinationAddressType=email&giftMessage=For%20you'
  const { json } = await rig.get(`/v1/top-up/checkout-session/${encodeURIComponent(to)}/usd/1000?${query}`)
  const { topUpQuote, paymentSession } = json as {
    topUpQuote: { topUpQuoteId: string }
    paymentSession: { id: string }
  }
  await rig.post(`/checkout/${paymentSession.id}`, 'card=4242424242424242')
  return topUpQuote.topUpQuoteId
}

const outboxOf = async (rig: PaymentRig, nowMs = start): Promise<Record<string, unknown>[]> => {
  const headers = { authorization: `Bearer ${await makeServiceToken(secret, nowMs)}` }
  const { json } = await rig.get('/v1/outbox', headers)
  return (json as { letters: Record<string, unknown>[] }).letters
}

t.test('without a mail server letters are kept, for the operator to read', async (t) => {
  const rig = await paymentRig(t)
  const gift = await give(rig, 'friend@example.org')
  t.equal((await rig.get('/v1/outbox')).status, 401)
  t.match(await outboxOf(rig), [{ to: 'friend@example.org', gift, message: 'For you', state: 'waiting' }])
  t.equal(await rig.service.outbox.work(), 1)
  t.match(await outboxOf(rig), [{ gift, state: 'kept' }])
  t.equal(await rig.service.outbox.work(), 0)
  const page = await rig.get(`/gift?id=${gift}&email=friend%40example.org`)
  t.match(page, { status: 200, text: /name="destinationAddress"/ })
  t.match(page.text, gift)
  t.match(
    (await rig.get(`/gift?id=${encodeURIComponent('"><script>')}&email=x`)).text,
    /&quot;&gt;&lt;script/,
  )
})

t.test('each letter is sent once; what may pass is tried again, what is for good is not', async (t) => {
  const server = await mailServer(t)
  const mailer = new SmtpMailer({
    url: `smtp://127.0.0.1:${server.port}`,
    from: 'Credits <credits@sluice.test>',
    limitMs: 60_000,
  })
  const rig = await paymentRig(t, { mailer })
  const gift = await give(rig, 'friend@example.org')
  await Promise.all([rig.service.outbox.work(), rig.service.outbox.work()])
  t.equal(server.letters.length, 1)
  const [letter = ''] = server.letters
  // Long lines are folded by the encoding of the letter (RFC 2045 section 6.7).
  const text = letter.replace(/=\n/g, '').replace(/=3D/g, '=')
  t.match(text, new RegExp(`^Message-ID: <gift-${gift}@sluice.test>`, 'im'))
  t.match(text, /^To: .*friend@example\.org/im)
  t.match(text, `http://gifts.test/gift?id=${gift}&email=friend%40example.org`)
  t.match(text, '1225600000000 winc')
  t.match(text, 'For you')
  await rig.service.outbox.work()
  t.equal(server.letters.length, 1, 'not again')
  t.match(await outboxOf(rig), [{ state: 'sent', tries: 1 }])

  server.answers.push('451 later', '550 nobody of that name')
  const later = await give(rig, 'later@example.org')
  await rig.service.outbox.work()
  const stateOf = async (id: string, nowMs = start): Promise<unknown> =>
    (await outboxOf(rig, nowMs)).find((one) => one.gift === id)
  t.match(await stateOf(later), { state: 'waiting', tries: 1, why: /451/ })
  const never = await give(rig, 'never@example.org')
  await rig.service.outbox.work()
  t.match(await stateOf(never), { state: 'failed', why: /550/ })
  t.match(await stateOf(later), { state: 'waiting', tries: 1 }, 'not before its time')
  rig.setTime(start + 60_000)
  await rig.service.outbox.work()
  t.match(await stateOf(later, start + 60_000), { state: 'sent', tries: 2 })
  t.equal(server.letters.length, 2)
  t.notOk(server.receivers.some((line) => line.includes('\n')))
})

t.test('an address with more in it is one receiver, or none', async (t) => {
  const rig = await paymentRig(t)
  for (const to of ['a@b.co,c@d.co', 'a@b.co\r\nRCPT TO:<x@y.z>', '<a@b.co>', 'a@b', '"a b"@c.de'])
    t.equal(
      (
        await rig.get(
          `/v1/top-up/checkout-session/${encodeURIComponent(to)}/usd/1000?destinationAddressType=email`,
        )
      ).status,
      400,
      to,
    )
})
