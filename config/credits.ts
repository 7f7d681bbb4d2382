import { maybeText, maybeUrls, readWholeUrl, secret, whole } from './setting.js'

/** Credits: where their ledger is, and what they cost. */

export const credits = {
  databaseUrl: secret(
    maybeText({
      env: 'PAYMENT_DATABASE_URL',
      allowed: 'a postgres:// address',
      shape: /^postgres(?:ql)?:\/\/\S+$/,
      why: 'Keeps the ledger in PostgreSQL, for several payment services on one database. Unset: below DATA_PATH.',
    }),
  ),
  oracleUrls: secret(
    maybeUrls(
      {
        env: 'PAYMENT_ORACLE_URLS',
        why: 'Sources of prices: /simple/price (CoinGecko), /pricemulti, /exchange-rates (Coinbase). Devnet: a table.',
      },
      readWholeUrl,
    ),
  ),
  feePermille: whole({
    env: 'PAYMENT_FEE_PERMILLE',
    default: 234,
    min: 0,
    max: 999,
    why: 'Thousandths of each payment that are the fee of the service; the rest becomes credits.',
  }),
  itemMicroUsd: whole({
    env: 'PAYMENT_ITEM_MICRO_USD',
    default: 20,
    min: 0,
    max: 1_000_000,
    why: 'Charged for each item besides its bytes, in millionths of USD.',
  }),
}
