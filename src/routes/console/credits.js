/** The part of the console about the payment service: prices, payments that are waited for, wallets, corrections. */
import { number, span } from './metrics.js'
import { watchService } from './service-watch.js'
import { ask, askText, byId } from './session.js'
import { coins, facts } from './uploads.js'
import { cell, element, fill, table } from './view.js'

const everyMs = 15_000
let shown = ''
let key = ''

const credits = (winc) => `${coins(winc)} credits`

/** Looks while somebody looks on. Nothing is requested before the service runs in this program. */
export const creditsPart = watchService('credits', async () => show(await ask('credits')), everyMs)

function show({ now, oracle, pending, promotions, accounts, reconciliations }) {
  const { usd = {}, perUsd = {}, failing } = oracle
  const age = oracle.ageMs === undefined ? 'fixed' : `${span(oracle.ageMs / 1000)} old`
  byId('credits-oracle').textContent = failing === undefined ? age : 'failing'
  const others = Object.entries(perUsd).filter(([name]) => name !== 'usd')
  const prices = [
    ...Object.entries(usd).map(([name, value]) => [`1 ${name.toUpperCase()}`, `${number(value)} USD`]),
    ...others.map(([name, value]) => ['1 USD', `${number(value)} ${name.toUpperCase()}`]),
  ]
  fill(byId('credits-prices'), [
    facts([['Told by', oracle.source], ...(failing === undefined ? [] : [['No prices', failing, 'bad']])]),
    table(
      ['Of', 'Price'],
      prices.map(([name, value]) => [cell(name), cell(value, 'number')]),
      'No prices are known.',
    ),
  ])
  const waiting = pending.map((one) => [
    cell(one.id, 'mono cut'),
    cell(one.token),
    cell(credits(one.winc), 'number'),
    cell(one.height === undefined ? 'in no block yet' : `in block ${number(one.height)}, not deep enough`),
    cell(span((now - one.createdMs) / 1000), 'number'),
  ])
  fill(byId('credits-pending'), [
    table(
      ['Payment', 'Token', 'Worth', 'Why it waits', 'For'],
      waiting,
      'No payment on a chain is waited for.',
      'pending',
    ),
  ])
  const declared = promotions.map((one) => [
    cell(one.code, 'mono'),
    cell(`${one.permille / 10} %`, 'number'),
    cell(one.expiresMs < now ? 'over' : `until ${new Date(one.expiresMs).toLocaleDateString()}`),
    cell(`${number(one.uses)}${one.usesMax > 0 ? ` of ${number(one.usesMax)}` : ''}`, 'number'),
    cell(one.isForNew ? 'new wallets' : 'everybody'),
  ])
  fill(byId('credits-promotions'), [
    table(
      ['Code', 'Less', 'Good', 'Used', 'For'],
      declared,
      'No promotion was declared (sluice promotion).',
      'promotions',
    ),
  ])
  const own = accounts.map((one) => [cell(one.name, 'mono'), cell(credits(one.winc), 'number')])
  fill(byId('credits-accounts'), [table(['Account of ours', 'Balance'], own, 'Nothing was paid yet.')])
  const days = reconciliations.map((one) => [
    cell(one.day),
    cell(number(one.cards + one.chains + (one.usdc ?? 0)), 'number'),
    cell(number(one.differences.length), one.differences.length > 0 ? 'number bad' : 'number'),
  ])
  fill(byId('credits-days'), [
    table(['Day compared', 'Payments', 'Differences'], days, 'No day was compared yet.'),
  ])
}

async function showWallet(address) {
  const place = byId('wallet-found')
  try {
    const { wallet, names, balance, rows } = await ask(`credits/${encodeURIComponent(address)}`)
    shown = wallet
    key = ''
    const saving = element('button', { type: 'button' }, 'Save the statement (CSV)')
    saving.addEventListener('click', () => void saveStatement(wallet))
    const lines = rows.map((row) => [
      cell(new Date(row.timeMs).toLocaleString(), 'number'),
      cell(row.reason),
      cell(row.other, 'mono cut'),
      cell(credits(row.winc), row.winc.startsWith('-') ? 'number bad' : 'number'),
      cell(row.state),
      cell(row.note || row.reference, 'cut'),
    ])
    fill(place, [
      facts([
        ['Wallet', wallet, 'mono'],
        ...(names.length > 1 ? [['Also', names.slice(1).join(', '), 'mono']] : []),
        ['Balance', balance === undefined ? 'none' : `${balance.winc} winc (${credits(balance.winc)})`],
        ...(balance === undefined
          ? []
          : [['With what it may use of others', credits(balance.effectiveBalance)]]),
      ]),
      element('p', {}, [saving]),
      table(
        ['Time', 'Reason', 'Other account', 'Amount', 'State', 'For'],
        lines,
        'Nothing has happened.',
        'rows',
      ),
    ])
    byId('correct-form').hidden = false
  } catch (error) {
    shown = ''
    byId('correct-form').hidden = true
    fill(place, [element('p', { class: 'bad' }, error.message)])
  }
}

async function saveStatement(wallet) {
  try {
    const text = await askText(`statements/${encodeURIComponent(wallet)}`)
    const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
    element('a', { href: url, download: `statement-${wallet}.csv` }).click()
    URL.revokeObjectURL(url)
  } catch (error) {
    byId('credits-said').textContent = error.message
  }
}

byId('wallet-form').addEventListener('submit', (event) => {
  event.preventDefault()
  void showWallet(byId('wallet-what').value.trim())
})

byId('correct-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const [winc, note] = [byId('correct-winc').value.trim(), byId('correct-note').value.trim()]
  if (shown === '' || !confirm(`Correct ${shown} by ${winc} winc? This stands in the ledger for good.`))
    return
  // The same order again, after a failure, is the same correction.
  key ||= crypto.randomUUID()
  try {
    const { message } = await ask('corrections', 'POST', { key, address: shown, winc, note })
    byId('credits-said').textContent = message
    byId('correct-winc').value = ''
    byId('correct-note').value = ''
    await showWallet(shown)
  } catch (error) {
    byId('credits-said').textContent = error.message
  }
})
