/**
 * What runs in the browser on the paywall. It talks to the visitor's wallet (EIP-1193), to this gateway, and where the visitor
 * wants to buy to the operator's giver of session tokens, to nobody else; every
 * word it shows is set as text. It reads the offer out of the page, has it signed (EIP-712, EIP-3009) and sends the
 * payment. One that was signed is kept until its fate is known, so that a reload does not pay twice.
 */
const offer = JSON.parse(document.getElementById('offer').textContent)
const button = document.getElementById('pay')
const word = document.getElementById('word')
const shown = document.getElementById('shown')
const say = (text, bad) => {
  word.textContent = text
  word.className = bad ? 'bad' : ''
}
const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))
const keptAs = `payment:${offer.payAt}`

function kept() {
  try {
    const one = JSON.parse(sessionStorage.getItem(keptAs))
    return one && one.validBefore > Date.now() / 1000 + 10 ? one : undefined
  } catch {
    return undefined
  }
}
function keep(payment) {
  try {
    if (payment) sessionStorage.setItem(keptAs, JSON.stringify(payment))
    else sessionStorage.removeItem(keptAs)
  } catch {
    /* a browser that keeps nothing pays all the same */
  }
}

async function chooseChain(wallet) {
  const chainId = `0x${offer.chainId.toString(16)}`
  if ((await wallet.request({ method: 'eth_chainId' })) === chainId) return
  try {
    await wallet.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] })
  } catch (error) {
    if (error.code !== 4902) throw error
    await wallet.request({ method: 'wallet_addEthereumChain', params: [{ chainId, ...offer.chain }] })
  }
}

const typed = (fields) =>
  fields
    .split(',')
    .map((field) => field.split(' '))
    .map(([type, name]) => ({ name, type }))
const types = {
  EIP712Domain: typed('string name,string version,uint256 chainId,address verifyingContract'),
  TransferWithAuthorization: typed(
    'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce',
  ),
}

async function sign() {
  const wallet = window.ethereum
  say('Waiting for your wallet…')
  const [from] = await wallet.request({ method: 'eth_requestAccounts' })
  if (!from) throw new Error('the wallet gave no account')
  await chooseChain(wallet)
  const now = Math.floor(Date.now() / 1000)
  const random = crypto.getRandomValues(new Uint8Array(32))
  const authorization = {
    from,
    to: offer.terms.payTo,
    value: offer.value,
    validAfter: String(now - 600),
    validBefore: String(now + offer.terms.maxTimeoutSeconds),
    nonce: `0x${[...random].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`,
  }
  const domain = { ...offer.terms.extra, chainId: offer.chainId, verifyingContract: offer.terms.asset }
  const data = JSON.stringify({
    types,
    primaryType: 'TransferWithAuthorization',
    domain,
    message: authorization,
  })
  const signature = await wallet.request({ method: 'eth_signTypedData_v4', params: [from, data] })
  const payload = { signature, authorization }
  const envelope =
    offer.version === 1
      ? { x402Version: 1, scheme: 'exact', network: offer.terms.network, payload }
      : { x402Version: 2, accepted: offer.terms, payload }
  const payment = { header: btoa(JSON.stringify(envelope)), validBefore: Number(authorization.validBefore) }
  keep(payment)
  return payment
}

async function send(payment) {
  const name = offer.version === 1 ? 'X-PAYMENT' : 'PAYMENT-SIGNATURE'
  const headers = { Accept: 'application/json', [name]: payment.header }
  for (let tries = 0; tries < 30; tries += 1) {
    say(tries === 0 ? 'Paying…' : 'The payment is being settled…')
    let answer
    try {
      answer = await fetch(offer.payAt, { headers, cache: 'no-store', redirect: 'error' })
    } catch {
      /* requested again below */
    }
    if (answer && answer.status !== 503) {
      keep()
      return answer
    }
    await wait(Math.min(Number(answer?.headers.get('retry-after')) || 2, 10))
  }
  throw new Error('the payment is not settled yet. Press the button again in a minute: it is not paid twice')
}

async function pay() {
  button.disabled = true
  try {
    const answer = await send(kept() ?? (await sign()))
    if (!answer.ok) {
      const why = await answer.json().catch(() => ({}))
      throw new Error(`the payment was refused (${why.message || answer.status})`)
    }
    say('Paid. Thank you.')
    if (offer.goTo) location.replace(offer.goTo)
    else {
      shown.textContent = await answer.text()
      shown.hidden = false
    }
  } catch (error) {
    if (error.code === 4001) say('You declined in your wallet. Nothing was paid.', true)
    else say(`It did not work: ${error.message || 'the wallet failed'}.`, true)
    button.disabled = false
  }
}

/** Where the visitor can buy USDC: for an account of the wallet, by a token that is good for minutes and for one visit. */
async function buy(event) {
  const buyButton = event.currentTarget
  buyButton.disabled = true
  try {
    const [address] = await window.ethereum.request({ method: 'eth_requestAccounts' })
    const answer = await fetch(offer.sessionsAt, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ addresses: [{ address, blockchains: ['base'] }], assets: ['USDC'] }),
      ...{ cache: 'no-store', redirect: 'error' },
    })
    const { token } = answer.ok ? await answer.json() : {}
    if (typeof token !== 'string' || token === '') throw new Error(`it answered ${answer.status}`)
    const query = new URLSearchParams({ sessionToken: token, defaultAsset: 'USDC', defaultNetwork: 'base' })
    const link = document.createElement('a')
    link.href = `https://pay.coinbase.com/buy/select-asset?${query}`
    link.target = '_blank'
    link.rel = 'noopener noreferrer'
    link.textContent = 'Go on to buy USDC'
    buyButton.replaceWith(link)
    say('The way to buy opens in a new tab. Come back here to pay.')
    // Browsers that no longer count this as the visitor's click leave it to the visitor.
    link.click()
  } catch (error) {
    say(
      error.code === 4001
        ? 'You declined in your wallet.'
        : `USDC cannot be bought here now: ${error.message}.`,
      true,
    )
    buyButton.disabled = false
  }
}

if (window.ethereum) {
  button.disabled = false
  button.addEventListener('click', pay)
  const other = document.getElementById('buy')
  other?.addEventListener('click', buy)
  if (other) other.disabled = false
} else {
  say(
    'No wallet was found in this browser. Install one, or open this page in the browser of your wallet.',
    true,
  )
}
