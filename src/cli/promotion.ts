import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { servicePorts } from '../../config/services.js'
import { systemClock } from '../actor/clock.js'
import { privateSecret } from '../main/private-secret.js'
import type { Promotion } from '../payment/prices/promotions.js'
import { makeServiceToken } from '../payment/requests/service-token.js'
import { exitCode } from './exit-code.js'
import { whyUnreachable } from './unreachable.js'

const help = `sluice promotion: declares a discount on card payments

Usage: sluice promotion CODE --percent N [--days N] [--least USD] [--most USD] [--uses N] [--new] [--payment URL]

  --percent  of the payment, 1 to 100
  --days     how many days it is valid; 30
  --least    payments below so many whole USD are not promoted; 0
  --most     the most that it gives, in whole USD; 1000
  --uses     for all wallets together, 0 for any number; 0
  --new      only for wallets that have never paid
  --payment  the payment service, which must run; http://127.0.0.1:PAYMENT_PORT (3002)

A second promotion of the same code replaces the first and keeps its count. Ends with code 0, with 2 on wrong arguments, with 5
where the service does not answer, with 1 where it refuses.
`
const dayMs = 24 * 3600_000

/** Declares a promotion at the payment service that runs with the same settings. */
export async function promotionCommand(words: readonly string[]): Promise<number> {
  const usual = { days: '30', least: '0', most: '1000', uses: '0' }
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      new: { type: 'boolean' },
      percent: { type: 'string' },
      days: { type: 'string' },
      least: { type: 'string' },
      most: { type: 'string' },
      uses: { type: 'string' },
      payment: { type: 'string' },
    },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const { percent = '', days, least, most, uses } = { ...usual, ...values }
  const [code = '', ...more] = positionals
  const numbers = [percent, days, least, most, uses]
  if (code === '' || more.length > 0 || numbers.some((one) => !/^\d{1,6}$/.test(one))) {
    process.stderr.write('sluice promotion: give CODE --percent N; see sluice promotion --help\n')
    return exitCode.usage
  }
  const config = readConfig()
  if (Array.isArray(config)) {
    for (const line of config) process.stderr.write(`sluice promotion: ${line}\n`)
    return exitCode.usage
  }
  const now = systemClock.now()
  const promotion: Promotion = {
    code,
    permille: Number(percent) * 10,
    expiresMs: now + Number(days) * dayMs,
    leastMicroUsd: Number(least) * 1_000_000,
    mostMicroUsd: Number(most) * 1_000_000,
    usesMax: Number(uses),
    isForNew: values.new === true,
  }
  const payment =
    values.payment ?? `http://127.0.0.1:${servicePorts(config.services, config.server.port).payment}`
  return declare(payment, await makeServiceToken(privateSecret(config), now), promotion)
}

async function declare(payment: string, token: string, promotion: Promotion): Promise<number> {
  const end = new AbortController()
  const timer = systemClock.after(10_000, () => end.abort())
  const answer = await fetch(`${payment}/v1/promotions`, {
    method: 'POST',
    body: JSON.stringify(promotion),
    headers: { authorization: `Bearer ${token}` },
    signal: end.signal,
  }).catch(whyUnreachable)
  timer.cancel()
  if (typeof answer === 'string') {
    process.stderr.write(
      `sluice promotion: ${payment} does not answer: ${answer}. Start the service, or name its address by --payment\n`,
    )
    return exitCode.unreachable
  }
  if (!answer.ok) {
    process.stderr.write(`sluice promotion: ${answer.status}: ${await answer.text()}\n`)
    return exitCode.failed
  }
  process.stdout.write(`${promotion.code} is good until ${new Date(promotion.expiresMs).toISOString()}\n`)
  return exitCode.done
}
