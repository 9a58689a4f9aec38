"""The direction of a metric is read from the words of its name, or asked for: it is never guessed.

The names are those that common libraries log (torchmetrics, scikit-learn with its `neg_` scorers, Hugging Face
evaluate, Keras, XGBoost, Stable-Baselines3, RLlib, CleanRL, lm-eval, Ultralytics); the direction of each is from its
meaning.
"""

import json

import pytest

from ablate.config import question
from ablate.config.errors import ConfigError
from ablate.config.schema import Direction, SweepConfig, Until
from ablate.directions import HIGHER as HIGHER_TABLE
from ablate.directions import LOWER as LOWER_TABLE
from ablate.directions import direction_of, range_of
from ablate.sweep.search.objective import COSTS, objectives_of
from ablate.sweep.search.settings import Settings
from analysis.compare import main as compare_main
from analysis.comparison import compare
from analysis.plain_csv import load_csv
from analysis.report import main as report_main
from analysis.wording import verdict_sentences

HIGHER = """
r2; R2; R²; r2_score; mrr; MRR@10; hits@1; Hits@10; mAP; map; mAP@50; mAP50-95; metrics/mAP50-95(B); ndcg;
ndcg@10; nDCG; precision; recall; recall@k; recall@5; dice; ssim; SSIM; mIoU; miou; pass@1; pass@k; pass_at_1;
exact; exact_match; eval/exact_match; rouge; rouge1; rougeL; ROUGE-L; rougeLsum; rouge1_fmeasure; mcc; pearson;
spearman; kendall; kendall_tau; episodic_return; charts/episodic_return; ep_rew_mean; rollout/ep_rew_mean;
success_rate; log_likelihood; log_prob; explained_variance; macro_avg/f1-score; weighted_avg/f1-score; f1;
f1_score; F1; F1Score; val_f1; valF1; top5_acc; top-1-accuracy; acc@1; acc,none; acc_norm,none;
exact_match,strict-match; balanced_accuracy; matthews_corrcoef; cohen_kappa; jaccard; auroc; AUROC; roc_auc;
roc_auc_ovo_weighted; average_precision; AP; AP50; bbox_mAP_50; AP_small; bleu; BLEU4; sacrebleu; meteor; chrf;
chrF++; bertscore; bert_score; throughput; tokens_per_second; tokens/s; tok/s; samples_per_second;
eval_samples_per_second; steps/sec; fps; time/fps; charts/SPS; it/s; neg_mean_squared_error;
neg_mean_absolute_error; neg_root_mean_squared_error; neg_log_loss; neg_brier_score; neg_max_error;
neg_negative_likelihood_ratio; positive_likelihood_ratio; adjusted_mutual_info_score; adjusted_rand_score;
v_measure_score; homogeneity_score; completeness_score; fowlkes_mallows_score; silhouette_score;
d2_absolute_error_score; d2_log_loss_score; psnr; peak_signal_noise_ratio; signal_to_noise_ratio;
scale_invariant_signal_distortion_ratio; score; mean_score; test/score; val_score; normalized_score;
human_normalized_score; win_rate; elo; reward; episode_reward_mean; average_return; likelihood; elbo;
inception_score; r_squared; adjusted_r2; val_mean_io_u; one_hot_mean_io_u; val_sparse_categorical_accuracy;
cosine_similarity; precision_at_recall; sensitivity_at_specificity; tpr; true_positive_rate; specificity;
TokensPerSecond; EpRewMean; trainAcc; ValAccuracy; accuracy@128; eval/accuracy@128; Accuracy/train; acc/val;
num_correct; fraction_of_correct; area_under_the_roc_curve; probability_of_improvement; recall@precision=0.9;
R@1; r@5; P@1; 1-wer; one_minus_fid; inverse_perplexity; speedup; mfu; flops/s; hit_rate; hit_ratio; HR@10;
mean_reciprocal_rank; f0.5_score; fbeta_score; F2; negative_predictive_value; bwt; val_acc_epoch;
reward_per_step; accuracy_per_class; stoi; pesq; SI-SDR; sharpe_ratio; jaccard_index; rand_index;
macro avg/f1-score; accuracy (%); top-5 accuracy; Acc ↑; PSNR (dB); throughput (tokens/s)
"""

LOWER = """
loss; val_loss; valLoss; Loss/train; loss/val; eval/loss; eval/loss@128; train_loss_epoch; f1_loss; score_loss;
reward_loss; acc_error; score_time; negative_log_likelihood; nll; NLL; NLLLoss; mae; mse; rmse; MAPE; smape;
max_error; median_absolute_error; mean_squared_error; fid; FID; lpips; wer; cer; ter; perplexity; ppl; bpc;
bits_per_byte; bits_per_byte,none; word_perplexity; ece; brier; brier_score; brier_score_loss;
expected_calibration_error; time; seconds; latency; latency_ms; p99_latency; latency_p99; memory;
peak_memory_bytes; flops; regret; simple_regret; cumulative_regret; distance; kl; kl_divergence; approx_kl;
divergence; time_per_step; seconds_per_step; step_time; time_to_accuracy; steps_to_solve; epochs_to_accuracy;
train/value_loss; policy_gradient_loss; error; error_rate; val_err; top1_err; fpr; false_positive_rate;
fpr@95tpr; FPR95; fpr_at_95_tpr; fnr; eer; hamming_loss; hamming_distance; zero_one_loss; log_loss; logloss;
mlogloss; merror; multi_logloss; binary_error; cross_entropy; val_categorical_crossentropy; bce; hinge_loss;
huber; dist_to_goal; distance_from_goal; loss_of_accuracy; number_of_errors; num_failures; failure_rate;
crash_rate; davies_bouldin_score; fid_score; wer_score; fvd; chamfer; hausdorff_distance; edit_distance; crps;
pinball_loss; mean_pinball_loss; mean_tweedie_deviance; aic; bic; negative_log_prob; neg_log_likelihood;
neg_elbo; inverse_psnr; 1-ssim; 1-accuracy; one_minus_ssim; mean_rank; optimality_gap; total_flos;
train_runtime; eval_runtime; vaccine_error; gpu_mem; memory_mb; params; parameters; train_seconds; wasserstein;
mmd; surprisal; penalty; constraint_violations; collision_rate; hallucination_rate; toxicity; jsd; nlpd;
mean_absolute_percentage_error; mean_squared_log_error; mean_absolute_scaled_error; cost_per_token; speed_ms;
cox-nloglik; entropy_loss; negative_likelihood_ratio; false_alarm_rate; misclassification_rate; error@0.7;
loss_mean; loss/dataloader_idx_0; accuracy/loss; elapsed; ttft; time_elapsed; rmse_val; relative_error;
max_drawdown; time (s); loss [nats]; speed (ms); 1 - SSIM; mean squared error; FID ↓
"""

UNKNOWN = """
loss_ratio; entropy; lr; learning_rate; grad_norm; foo; x; value; ep_len_mean; episode_length; accuracy_std;
reward_std; acc_stderr,none; bias; coverage; temperature; epoch; step; global_step; batch_size; clip_fraction;
weight_decay; mean; std; accuracy_gap; generalization_gap; loss_drop; acc_drop; toxicity_rank; self_bleu;
attack_success_rate; survival_time; time_to_failure; neg_loss; neg_accuracy; train_minus_val_loss; acc_vs_loss;
p_value; gini; ks; energy; power; alpha; rank; hamming; err@10; likelihood_diff; pct_stereotype; log_var;
compression_ratio; sparsity; threshold; count; number; size; predictions; q_value; td_target; non_match;
not_solved; quantity; lossy; accurate; scored; timestamp; metric; result; output
"""


def names(table):
    return [name.strip() for name in table.replace("\n", " ").split(";")]


NAMED = [
    *((name, "higher") for name in names(HIGHER)),
    *((name, "lower") for name in names(LOWER)),
    *((name, None) for name in names(UNKNOWN)),
]


def test_w1_over_200_names_that_libraries_log_have_the_direction_of_their_meaning():
    assert min(len(names(HIGHER)), len(names(LOWER))) > 100
    wrong = {name: (direction_of(name), way) for name, way in NAMED if direction_of(name) != way}
    assert wrong == {}


@pytest.mark.parametrize("form", [str.upper, str.title, lambda name: f"val/{name}", lambda name: f"test_{name}_epoch"])
def test_w1_case_a_prefix_and_what_says_when_it_was_measured_change_nothing(form):
    plain = [name for name in names(HIGHER) + names(LOWER) if name.replace("_", "").isalpha() and name.islower()]
    wrong = [form(name) for name in plain if direction_of(form(name)) != direction_of(name)]
    assert wrong == []


def test_w1_the_two_lists_share_no_name():
    assert not set(names(HIGHER_TABLE)) & set(names(LOWER_TABLE))


def test_w1_what_a_run_records_beside_its_metrics_is_in_the_table():
    assert {name: direction_of(name) for name in COSTS} == {
        "seconds": "lower",
        "train_seconds": "lower",
        "tokens_per_second": "higher",
        "peak_memory_bytes": "lower",
        "parameters": "lower",
    }


@pytest.mark.parametrize(
    ("metric", "limits"),
    [
        ("eval/accuracy", (0, 1)),
        ("exact_match", (0, 1)),
        ("success_rate", (0, 1)),
        ("eval/loss@128", (0, float("inf"))),
        ("accuracy_loss", (0, float("inf"))),
        ("glossary", None),
    ],
)
def test_w1_limits_are_those_of_the_deciding_word(metric, limits):
    assert range_of(metric) == limits


def table(tmp_path, metric):
    """B is above A by 0.1 and a little on every one of five seeds."""
    rows = [f"{v},{s},{0.5 + 0.01 * s + (v == 'b') * (0.1 + 0.001 * s)}" for s in range(5) for v in "ab"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([f"variant,seed,{metric}", *rows, ""]))
    return path


@pytest.mark.parametrize(
    ("metric", "code"),
    [("r2", 0), ("hits@1", 0), ("mAP", 0), ("episodic_return", 0), ("log_likelihood", 0), ("f1_loss", 12), ("nll", 12)],
)
def test_w1_compare_says_better_where_more_is_better(tmp_path, capsys, metric, code):
    assert compare_main([str(table(tmp_path, metric)), "b", "a", "--metric", metric]) == code
    assert ("b: better" if code == 0 else "b: worse") in capsys.readouterr().out


def test_w1_compare_asks_for_the_direction_of_a_name_that_does_not_say(tmp_path, capsys):
    command = [str(table(tmp_path, "quux")), "b", "a", "--metric", "quux"]
    assert compare_main(command) == 2
    rule = "the name of the metric quux does not say which way is better; give --direction lower or --direction higher"
    assert capsys.readouterr().err == f"error: {rule}\n"
    assert compare_main([*command, "--direction", "lower"]) == 12
    assert compare_main([*command, "--direction", "higher"]) == 0
    assert "assumed" not in capsys.readouterr().out


def test_w1_a_misspelt_metric_is_told_as_such_and_not_as_one_without_direction(tmp_path, capsys):
    assert compare_main([str(table(tmp_path, "quux")), "b", "a", "--metric", "quuz"]) == 2
    assert "direction" not in capsys.readouterr().err


def test_w1_a_report_says_in_the_line_of_the_verdict_that_the_direction_was_assumed(tmp_path, capsys):
    path, out = table(tmp_path, "quux"), tmp_path / "out"
    assert report_main([str(path), "--metric", "quux", "--baseline", "a", "--out", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assumed = "direction assumed: lower is better; --direction lower|higher"
    assert f"b: worse than a (quux, {assumed});" in text
    assert f"Final quux, {assumed};" in text
    assert f"b: worse than a (quux, {assumed});" in (out / "report.md").read_text(encoding="utf-8").replace("\\|", "|")
    data = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert (data["direction"], data["direction_assumed"]) == ("lower", True)
    assert report_main([str(path), "--metric", "quux", "--out", str(out), "--direction", "lower"]) == 0
    assert json.loads((out / "comparison.json").read_text(encoding="utf-8"))["direction_assumed"] is False
    assert "assumed" not in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("values", [(1, 1.5, 1.2, 1, 1.4, 1.3), (1, 1, 1, 2, 2, 2)])
def test_w1_every_kind_of_verdict_says_that_the_direction_was_assumed(tmp_path, values):
    rows = [f"{v},{s},{values[3 * (v == 'b') + s]}" for v in "ab" for s in range(3)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["variant,seed,quux", *rows, ""]))

    sentences = verdict_sentences(compare(load_csv(path, metric="quux"), "quux"))
    assert all(one.count("direction assumed: lower is better; --direction lower|higher") == 1 for one in sentences)
    assert len(sentences) == 1


def test_w1_a_search_refuses_an_objective_whose_name_does_not_say_and_takes_what_is_declared():
    metrics = ["eval/loss", "eval/quux"]
    with pytest.raises(ConfigError, match=r"eval/quux: the name does not say which way is better; give hydra\.sweeper"):
        objectives_of(Settings(metric="eval/quux"), SweepConfig(), metrics)
    given = objectives_of(Settings(metric="eval/quux", direction="maximize"), SweepConfig(), metrics)
    declared = objectives_of(Settings(), SweepConfig(metric="eval/quux", direction=Direction.higher), metrics)
    assert [one.direction for one in (*given, *declared)] == ["maximize", "maximize"]


def test_w1_adding_seeds_until_decided_needs_a_direction():
    sweep = SweepConfig(metric="eval/quux", until=Until.decided)
    with pytest.raises(ConfigError, match=r"sweep.metric=eval/quux: .* give sweep.direction=lower or sweep.direction="):
        question.check(sweep, ["eval/quux"])
    sweep.direction = Direction.higher
    question.check(sweep, ["eval/quux"])
