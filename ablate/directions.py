"""Which way is better, by the name of a metric: the one table that the analysis, searches and sweeps read.

A name is split into words at every sign, at capitals (`valLoss`) and between letters and digits (`top5`). Words at the
end that only say of what or how (`val`, `mean`, numbers) are left out, and so is all that follows a preposition
(`time_to_accuracy` is a time, `recall@10` a recall). Then the last words decide: `f1_loss` is a loss. Where they are in
neither list, or mean one thing in one field and the opposite in another, there is no answer.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

Way = Literal["lower", "higher"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HIGHER = """
acc; acc norm; accuracies; accuracy; accuracy norm; agreement; ami; ap; ari; auc; auc mu; aucpr; auprc; auroc; auuc;
average precision; backward transfer; bert score; bertscore; bleu; bleurt; bwt; c index; calinski harabasz; ccc; chrf;
cider; cindex; clip score; comet; completeness; concordance; concordance index; corr; corrcoef; correct; correlation;
cos sim; cosine sim; cumulative gain; d 2 absolute error; d 2 brier; d 2 log loss; d 2 pinball; d 2 pinball loss; d 2
tweedie; dcg; detection rate; dice; dnsmos; dunn; elbo; elo; elpd; em; evidence; exact; explained variance; f 0 5; f
1; f 2; f beta; f measure; f score; fbeta; fitness; fmeasure; forward transfer; fowlkes mallows; fps; fscore; fwt;
gmean; goodput; hfu; hit; hit ratio; hits; homogeneity; improvement; inception score; informedness; io u; iou; ips;
jaccard; kappa; kendall; kendall tau; kendalltau; kge; krcc; likelihood; log prob; log probability; log probs; loglik;
loglikelihood; logp; logprob; logprobs; maj; map; match; matches; mauve; mcc; meteor; mfu; miou; mos; moverscore; mrr;
ms ssim; msssim; multiscale ssim; mutual info; mutual information; ndcg; negative predictive value; nist; nmi;
normalised score; normalized score; npv; nse; panoptic quality; pass; passed; passes; pcc; pearson; pearson r;
pearsonr; pesq; plcc; pnl; positive likelihood ratio; positive predictive value; ppv; pq; pr auc; precision;
precisions; profit; psnr; qini; qps; quality; r 2; r precision; r squared; rand; recall; recalls; reciprocal rank;
return; returns; revenue; rew; reward; rewards; roc auc; rouge; rougel; rougelsum; rprecision; rsquared; sacrebleu;
sari; sdr; sensitivity; sharpe; sharpe ratio; si sdr; si snr; signal distortion ratio; signal noise ratio; silhouette;
sim; similarity; snr; solved; sortino; sortino ratio; spearman; spearman r; spearman rho; spearmanr; specificity;
speed; speedup; spice; sps; srcc; ssim; stoi; success; success ratio; successes; successful; throughput; tnr; tpr;
tps; true negative; true negatives; true positive; true positives; uplift; utility; v measure; validity; vmaf;
vmeasure; win; win ratio; winrate; wins; wip; won; youden
"""
"""Metrics, separated by `;`, of which more is better."""

LOWER = """
abs rel; absrel; ade; aic; aicc; assd; aurc; average rank; avg rank; bce; ber; bic; bits; bits per byte; bits per
char; bits per character; bits per dim; bits per dimension; bits per token; bits per word; bpb; bpc; bpd; brier;
brisque; bytes; cce; ce; cer; chamfer; charcut; co 2; collision; collisions; cost; costs; crash; crashes; cross
entropy; crossentropy; crps; davies bouldin; delay; deviance; discrepancy; disparity; dist; distance; distances;
distortion; divergence; drawdown; duration; ece; edit distance; eer; elapsed; emd; emissions; epe; ergas; err; error;
error ratio; errors; fad; fail; failed; fails; failure; failure ratio; failures; fall out; fallout; false alarm; false
alarms; false discovery; false negative; false negatives; false omission; false positive; false positives; fde; fdr;
fid; fit time; flops; flos; fnr; forgetting; fpr; frechet; frr; fvd; gb; gib; hallucination; hallucinations; hamming
distance; hausdorff; hours; huber; incorrect; infidelity; infraction; infractions; invalid; jsd; kb; kib; kid; kl;
kld; kldiv; lag; latencies; latency; levenshtein; log cosh; log loss; logcosh; logloss; loss; losses; lpips; lsd;
macs; mad; mae; mape; mase; maxerr; mb; mcd; mce; mean rank; medae; median rank; mem; memory; mer; merror; mib;
minutes; misclassification; misclassifications; mismatch; mismatches; miss; missed; misses; mistake; mistakes;
mlogloss; mmd; mortality; mpjpe; ms; mse; msle; msre; nats; nats per token; negative likelihood ratio; nelbo; niqe;
nll; nllloss; nloglik; nlpd; nme; nrmse; omissions; optimality gap; outages; overhead; parameters; params; parity gap;
penalties; penalty; perplexity; pinball; piqe; ppl; pplx; rae; regret; regrets; residual; residuals; rmse; rmsle;
rmspe; rse; rss; runtime; runtimes; sae; sec; second; seconds; secs; sinkhorn; smape; sse; surprisal; ter; time;
times; timing; toxicity; tpot; ttft; unsolved; unsuccessful; violation; violations; vram; wait; walltime; wape;
wasserstein; wer; wil; wmape; worst rank; wrong; xent; xentropy; zero one
"""
"""Metrics, separated by `;`, of which less is better."""

NEUTRAL = _words("""
absolute adjusted agg aggregate aggregated all any average averaged avg balanced batch bbox best byte char character
class classes clean coef coeff coefficient count cum cumulative cur current dataloader db dev dl dom ema ep episode
episodes epoch epochs eval evaluation extract final first flexible fold frac fraction full global graph held heldout
highest holdout id idx image images index instance instances item iter iteration iterations k label labels large last
level local loo lowest macro max maximum mean median medium metric micro min minimum model moving multiclass
multilabel n node nodes none norm normalised normalized ns num number of offline online ood out overall ovo ovr pair
pairs pct per percent percentage percentile pixel pixels point points prob probability problem problems proportion
rate rates raw relative root run running sample samples segm sentence seq sequence sequences set share small smooth
smoothed span split squared stat statistic step steps strict sum sw task tasks test testing token tokens top total
train training trial us user users val valid validation value values weighted window wise word words
""")
"""Words that say of what, how or how often, and nothing of the direction."""

WEAK = frozenset({"score", "scores"})
"""What is more is better when it stands alone, and is decided by the word before where there is one: `fid_score`."""

HEAD_ENDS = _words("after at before by during for from given in of on over per to under until with within")
"""Prepositions: what follows them is not what was measured."""

NEGATED = _words("neg negative negated")
FLIPS = NEGATED | _words("inverse inv")
"""Directly before a metric they turn it round: `neg_mean_squared_error`, `1 - ssim`."""

OPEN = (
    "and", "anti", "attack", "err at", "membership", "minus", "no", "non", "not", "or", "self", "survival",
    "time alive", "time in", "time to failure", "time to live", "versus", "vs", "without",
)  # fmt: skip
"""Words that make a name mean the opposite in another field, or a comparison of two metrics."""

CLASSWISE = _words("acc accuracy loss precision recall reward score scores")
"""What is also measured on negative examples alone, so that `neg_loss` may be either."""

ALIASES = (
    (r" (mean )?io u ", " iou "),
    (r" area under (the )?(roc |pr |precision recall )?curve ", " auc "),
    (r" signal to noise ratio ", " snr "),
    (r" (p|prec) at (?=\d|k )", " precision at "),
    (r" r at (?=\d|k )", " recall at "),
    (r" (h|hr) at (?=\d|k )", " hits at "),
    (r" (steps|epochs|episodes|iterations|iters|trials|samples|queries|evaluations) to ", " time to "),
    (
        r" (tokens?|toks?|samples?|steps?|examples?|frames?|images?|imgs?|iterations?|iters?|its?|requests?|reqs?"
        r"|queries|words?|sequences?|items?|batch(?:es)?|episodes?|[tgm]?flops?|[kmg]i?b|bytes)"
        r" (per )?(s|sec|secs|second) ",
        " throughput ",
    ),
)
"""Names of several words with a preposition, and short ones, as one word that the lists have."""


def _phrases(table: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(name.split()) for name in table.replace("\n", " ").split(";"))


_KNOWN: dict[tuple[str, ...], Way] = {
    **dict.fromkeys(_phrases(HIGHER), "higher"),
    **dict.fromkeys(_phrases(LOWER), "lower"),
}
_WORDS = NEUTRAL | WEAK | FLIPS | HEAD_ENDS | {word for phrase in _KNOWN for word in phrase if len(word) > 1}
_LONGEST = max(map(len, _KNOWN))
_OTHER: dict[Way, Way] = {"lower": "higher", "higher": "lower"}


def direction_of(metric: str) -> Way | None:
    """Return which way is better by the words of a metric's name; None where they do not say."""
    head, phrase = _decisive(metric)
    if not phrase:
        return "higher" if head and head[-1] in WEAK else None
    way = _KNOWN[phrase]
    before = _without_end(head[: -len(phrase)], NEUTRAL | {"log"})
    if not before or before[-1] not in FLIPS:
        return way
    return None if set(phrase) <= CLASSWISE and before[-1] in NEGATED else _OTHER[way]


def range_of(metric: str) -> tuple[float, float] | None:
    """Return the values that a metric of this name can take, where its deciding word says so."""
    _, phrase = _decisive(metric)
    if {"accuracy", "exact", "match", "solved", "success"} & set(phrase):
        return 0.0, 1.0
    return (0.0, float("inf")) if {"loss", "perplexity"} & set(phrase) else None


def _decisive(metric: str) -> tuple[list[str], tuple[str, ...]]:
    """The words up to those that decide, and these, which are none where the name does not say.

    Where nothing but weak words is known, the first part ends with one of them.
    """
    words = words_of(metric)
    text = f" {' '.join(words)} "
    if any(f" {name} " in text for name in OPEN):
        return [], ()
    head = _without_end(_head(words), NEUTRAL)
    bare = _without_end(head, NEUTRAL | WEAK)
    for ending in (head, bare):
        for length in range(min(_LONGEST, len(ending)), 0, -1):
            phrase = tuple(ending[-length:])
            if phrase in _KNOWN:
                return ending, phrase
    return (head if not bare else []), ()


def _head(words: Sequence[str]) -> list[str]:
    """The words before the first preposition; what follows it where they only count (`number of errors`)."""
    cut = next((place for place, word in enumerate(words) if word in HEAD_ENDS), len(words))
    first = list(words[:cut])
    if cut < len(words) and not _without_end(first, NEUTRAL):
        return _head(words[cut + 1 :])
    return first


def _without_end(words: Sequence[str], left_out: frozenset[str]) -> list[str]:
    """The words without those at the end that are numbers, single letters or left out."""
    end = len(words)
    while end and _is_neutral(words, end - 1, left_out):
        end -= 1
    return list(words[:end])


def _is_neutral(words: Sequence[str], place: int, left_out: frozenset[str]) -> bool:
    word = words[place]
    if tuple(words[max(place - 1, 0) : place + 1]) in _KNOWN or tuple(words[max(place - 2, 0) : place + 1]) in _KNOWN:
        return False  # the 1 of f1, the norm of acc_norm
    return word in left_out or word.isdigit() or len(word) == 1


def words_of(metric: str) -> list[str]:
    """Return the words of a name in lower case: top, 5, acc of `top5_acc`; eval, exact, match of `eval/exact_match`."""
    text = unicodedata.normalize("NFKC", metric).replace("@", " at ")
    text = re.sub(
        r"((?<![^\s/(:])1\s*[-−]|(?<![A-Za-z\d])one[_ -]minus[_ -])\s*(?=[A-Za-z])", " inverse ", text, flags=re.I
    )
    words = [word for piece in re.findall(r"[^\W\d_]+|\d+", text) for word in _pieces(piece)]
    joined = f" {' '.join(words)} "
    for pattern, name in ALIASES:
        joined = re.sub(pattern, name, joined)
    return joined.split()


def _pieces(piece: str) -> list[str]:
    """A run of letters at its capitals, unless it is a known word as it stands: `mIoU`, `valLoss`."""
    if piece.lower() in _WORDS or piece.isdigit():
        return [piece.lower()]
    if (joined := re.fullmatch(r"(train|val|valid|test|eval|dev)([a-z]+)", piece)) and joined[2] in _WORDS:
        return list(joined.groups())
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+", piece)
    return [part.lower() for part in parts]
